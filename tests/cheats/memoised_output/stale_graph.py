"""Captures a CUDA graph once, on private copies of the first inputs, and replays it.

Mechanism: a graph reads the addresses it was captured with. An honest solution copies each call's inputs there before
the replay; this one saves the copy, and the replay computes the first call's output again. Caught because the second
call has other inputs.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph: torch.cuda.CUDAGraph | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            self.diagonal, self.matrix, self.out = diagonal.clone(), matrix.clone(), torch.empty_like(matrix)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                kernels.scale_rows_into(self.diagonal, self.matrix, self.out)
        self.graph.replay()
        return self.out
