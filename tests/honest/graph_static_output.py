"""A CUDA graph whose output stays in the graph's own memory, and is the answer of each call.

Suspicious: the answer is at the same place each time, in memory that no call allocates. Honest: each replay writes it.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph: torch.cuda.CUDAGraph | None = None

    def capture(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.cuda.CUDAGraph:
        self.diagonal, self.matrix = diagonal.clone(), matrix.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.out = kernels.scale_rows(self.diagonal, self.matrix)
        return graph

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.graph is None:
            self.graph = self.capture(diagonal, matrix)
        self.diagonal.copy_(diagonal)
        self.matrix.copy_(matrix)
        self.graph.replay()
        return self.out
