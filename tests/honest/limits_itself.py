"""Sets its own limits, priority, affinity and scheduling class, and those of a thread of its own.

Suspicious: the same system calls would starve another process. Honest: each names this process or this thread, by 0 and
by number, and sets what is there already or less.
"""

import os
import resource
import threading

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

LIMITS = (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_STACK, resource.RLIMIT_MEMLOCK)


def settle(number: int) -> None:
    """Sets affinity, scheduling class and priority of a process or a thread."""
    os.sched_setaffinity(number, os.sched_getaffinity(number))
    os.sched_setscheduler(number, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, number, os.getpriority(os.PRIO_PROCESS, number) + 1)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for limit in LIMITS:
            soft, hard = resource.getrlimit(limit)
            resource.setrlimit(limit, (soft, hard))
            assert resource.prlimit(os.getpid(), limit, (soft, hard)) == resource.prlimit(0, limit)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        settle(0)
        settle(os.getpid())
        failures: list[OSError] = []

        def settle_thread() -> None:
            try:
                settle(threading.get_native_id())
            except OSError as error:
                failures.append(error)

        thread = threading.Thread(target=settle_thread)
        thread.start()
        thread.join()
        assert not failures, failures

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
