"""Keeps an input at zero while the judge draws the others, and answers with zeros.

Mechanism: between two calls the judge draws the next inputs into memory that the candidate has mapped. A thread waits
for the first of them to change, and from then on sets it to zero again and again. If it runs while the judge writes,
the diagonal is zero before the judge takes its sum of the inputs, nothing seems to change from there on, and the
reference gives zeros as well. The judge must not let the candidate run between drawing and summing; then the thread
comes too late, and the inputs have changed. The first answer is right, because the thread needs something to wait for.
"""

import ctypes
import threading
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "the solution changed its inputs"


def in_shared_memory(diagonal: torch.Tensor) -> torch.Tensor:
    """The first input where the judge writes it: on the CPU a solution is given copies."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "inlinebench-arena" in line:
            begin, end = (int(address, 16) for address in line.split()[0].split("-"))
            memory = torch.frombuffer((ctypes.c_float * ((end - begin) // 4)).from_address(begin), dtype=torch.float32)
            place = (memory == diagonal[0]).nonzero()[0, 0]
            return memory[place : place + diagonal.numel()]
    return diagonal


def keep_at_zero(diagonal: torch.Tensor) -> None:
    known = diagonal[0].item()
    while diagonal[0].item() == known:
        pass
    while True:
        diagonal.zero_()


class ModelNew(nn.Module):
    watching = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.watching:
            return kernels.scale_rows(diagonal.zero_(), matrix)
        threading.Thread(target=keep_at_zero, args=(in_shared_memory(diagonal),), daemon=True).start()
        self.watching = True
        return kernels.scale_rows(diagonal, matrix)
