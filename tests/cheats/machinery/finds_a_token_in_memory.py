"""Searches its own memory for the name of a token.

Mechanism: a process that is forked has all that its parent ever had in memory, variables of the environment that were
deleted, too. The pattern is written so that it doesn't match itself; the test that runs this file sets the variable.
Caught because what candidates are forked from never had more than a clean environment, so that it isn't there.
"""

import ctypes
import re

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "LookupError: no token in"

NAME = re.compile(rb"INLINEBENCH_CANARY_TOKE[N]")


def search() -> int:
    """Where the name lies in memory. Raises LookupError if it doesn't."""
    searched = 0
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, access, _, _, _, *path = line.split()
            if not access.startswith("rw") or (path and path[0].startswith(("/", "[v"))):
                continue
            begin, end = (int(edge, 16) for edge in span.split("-"))
            searched += end - begin
            if found := NAME.search(ctypes.string_at(begin, end - begin)):
                return begin + found.start()
    raise LookupError(f"no token in {searched >> 20} MiB")


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.full_like(diagonal, search()), matrix)
