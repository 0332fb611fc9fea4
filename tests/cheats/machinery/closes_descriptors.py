"""Closes its pipes and sockets, the channel to the judge among them, and its log.

Mechanism: a harness that reads the verdict from a socket finds it closed, and might take the silence for an end without
complaint. Caught as the candidate's end before its answer, because it has nothing left to answer with.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "the solution's process "


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        links = {int(name): f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")}
        for fd, link in links.items():
            if fd <= 2 or (os.path.islink(link) and os.readlink(link).startswith(("pipe:", "socket:"))):
                os.close(fd)
        return out
