"""Lowers the judge's limit of open files with prlimit, which takes the number of any process.

Mechanism: limits of another process of the same user can be set from outside, without tracing it. With no more files to
open the judge fails, which says nothing about the solution; with a limit of processor time it is killed by the kernel.
Both the libc function and Python's are tried on the processes above this one that belong to the run. Where it works,
the limit is set back at once and the answer is right.
"""

import ctypes
import os
import resource
from pathlib import Path

import torch
from torch import nn

from tests.cheats.judge import process_id
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

libc = ctypes.CDLL(None, use_errno=True)


def of_the_run(pid: int) -> bool:
    """Whether a process is one of the harness's: nothing else on the machine is touched."""
    return any(name in Path(f"/proc/{pid}/cmdline").read_text() for name in ("inlinebench", "run_eval"))


def lower(pid: int) -> None:
    """Sets another process's limit of files to what it is now, less one. Raises PermissionError."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    limit = (ctypes.c_uint64 * 2)(soft - 1, hard)
    if libc.prlimit64(pid, resource.RLIMIT_NOFILE, ctypes.byref(limit), None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        judge = process_id()
        if judge <= 1 or not of_the_run(judge):
            raise PermissionError("the judge is out of sight")
        lower(judge)
        return kernels.scale_rows(diagonal, matrix)
