"""Gives the judge the lowest priority for the processor and the disk, and one processor only.

Mechanism: niceness, scheduling class, affinity and the class of disk accesses of another process of the same user can
be set without tracing it. Then the reference's host side is slow, and the solution looks fast. Each is set to what the
judge has already, which needs the same right and does no harm. The answer is right where one of them works.
"""

import ctypes
import os
from collections.abc import Callable

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

IOPRIO_SET, IOPRIO_GET, IOPRIO_WHO_PROCESS = 251, 252, 1  # x86-64
libc = ctypes.CDLL(None, use_errno=True)


def set_disk_priority(pid: int) -> None:
    now = libc.syscall(IOPRIO_GET, IOPRIO_WHO_PROCESS, pid)
    if now < 0 or libc.syscall(IOPRIO_SET, IOPRIO_WHO_PROCESS, pid, now):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


WAYS: dict[str, Callable[[int], None]] = {
    "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
    "sched_setaffinity": lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(pid)),
    "sched_setscheduler": lambda pid: os.sched_setscheduler(pid, os.sched_getscheduler(pid), os.sched_param(0)),
    "ioprio_set": set_disk_priority,
}


def working(pid: int) -> list[str]:
    """The ways that work on a process."""
    found = []
    for name, way in WAYS.items():
        try:
            way(pid)
        except OSError:
            continue
        found.append(name)
    return found


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        judge = os.getppid()
        if judge <= 1 or not (ways := working(judge)):
            raise PermissionError("nothing of the judge can be set")
        print("the judge can be slowed down by", ways)
        return kernels.scale_rows(diagonal, matrix)
