"""Has a child process fill a table in shared memory when it is constructed.

Suspicious: another process, memory that both see, semaphores and pipes. Honest: the child has ended before the first
call, and the table holds no answer.
"""

import multiprocessing
from multiprocessing import shared_memory
from multiprocessing.connection import Connection

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


def fill(name: str, answers: Connection) -> None:
    table = shared_memory.SharedMemory(name)
    table.buf[:4] = bytes([1, 2, 4, 8])
    table.close()
    answers.send("filled")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        table = shared_memory.SharedMemory(create=True, size=4)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=fill, args=(table.name, there))
        child.start()
        assert here.recv() == "filled"
        child.join()
        self.sizes = list(table.buf[:4])
        table.close()
        table.unlink()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        assert self.sizes == [1, 2, 4, 8]
        return kernels.scale_rows(diagonal, matrix)
