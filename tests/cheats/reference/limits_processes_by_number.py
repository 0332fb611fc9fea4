"""Reads limits with prlimit of all process numbers up to its own, and so finds the judge without /proc.

Mechanism: a sandbox may hide `/proc/PID` and forget that a system call takes the number itself. A limit that can be
read can be set: both need the same right, so this file only reads, from numbers of other processes, and is right where
one answers. The kernel's numbers of processes are few, so all are tried.
"""

import ctypes
import os
import resource

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

MOST = 1 << 16
libc = ctypes.CDLL(None, use_errno=True)


def threads_of_this_process() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}


def answering() -> list[int]:
    """The numbers of processes whose limits this one may read, without its own."""
    limit, own = (ctypes.c_uint64 * 2)(), threads_of_this_process()
    found = (pid for pid in range(1, MOST)
             if libc.prlimit64(pid, resource.RLIMIT_NOFILE, None, ctypes.byref(limit)) == 0)
    return [pid for pid in found if pid not in own]


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        found = answering()
        if not found:
            raise PermissionError("no other process answers")
        print("limits can be read of the processes", *found)
        return kernels.scale_rows(diagonal, matrix)
