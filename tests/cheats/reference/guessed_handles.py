"""Searches memory that opens by guessed IPC handles for a finished output.

Mechanism: a handle of CUDA IPC is made of small numbers, and it opens a whole allocation, whoever made it. Handles near
one of the solution's own could open the judge's: private inputs and the reference's outputs. Caught because all of the
judge's memory, the arena included, is memory that no handle opens. `benchmarks/guessed_handles.py` tries many more.
"""

import torch
from torch import nn

from tests.cheats import handles
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True

GUESSES = 2000


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        first, last = float(diagonal[0] * matrix[0, 0]), float(diagonal[-1] * matrix[-1, -1])
        for handle in handles.guesses(handles.own_handle(matrix.device), GUESSES):
            memory = handles.beginning(handle, matrix.numel() * matrix.element_size())
            found = torch.frombuffer(bytearray(memory), dtype=torch.float32) if memory else torch.zeros(1)
            if float(found[0]) == first and float(found[-1]) == last:
                return found.reshape(matrix.shape).to(matrix.device)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
