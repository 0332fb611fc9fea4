"""Shares semaphores, a lock, a queue and an array with a child process while it is constructed.

Suspicious: semaphores and shared memory have names that other processes could open. Honest: the names are random and
are removed, and the child has ended before the first call.
"""

import multiprocessing
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Semaphore

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


def fill(ready: Semaphore, numbers: "SynchronizedArray[int]", answers: "Queue[str]") -> None:
    ready.acquire()
    with numbers.get_lock():
        numbers[:] = [1, 2, 4, 8]
    answers.put("filled")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        context = multiprocessing.get_context("fork")
        ready, numbers, answers = context.Semaphore(0), context.Array("i", 4), context.Queue()
        child = context.Process(target=fill, args=(ready, numbers, answers))
        child.start()
        ready.release()
        assert answers.get(timeout=30) == "filled"
        child.join()
        self.sizes = list(numbers)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        assert self.sizes == [1, 2, 4, 8]
        return kernels.scale_rows(diagonal, matrix)
