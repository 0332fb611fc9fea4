"""Cuts off the file behind the memory that it shares with the judge.

Mechanism: the candidate inherits the file of the shared buffers, on a GPU that of the clock's flags. Where a file ends,
memory that maps it ends as well, and the judge dies of SIGBUS at its next look: `internal_error`, which says nothing
about a solution. It is done when the garbage collector runs, after the candidate's own last look. Nothing in a sandbox
forbids it, because the file is its own. Seals on the file do, and the trial in `forward` raises.
"""

import gc
import os
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"


def shared_file() -> int:
    """The descriptor of the judge's memory."""
    links = {int(name): f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")}
    return next(fd for fd, link in links.items() if os.path.islink(link) and "memfd:inlinebench-" in os.readlink(link))


def cut_off(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        os.ftruncate(shared_file(), 0)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        size = os.fstat(shared_file()).st_size
        os.ftruncate(shared_file(), size - 1)
        os.ftruncate(shared_file(), size)
        gc.callbacks.append(cut_off)
        return kernels.scale_rows(diagonal, matrix)
