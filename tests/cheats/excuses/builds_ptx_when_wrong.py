"""Builds a source that a CPU can't run, once it meets inputs for which it has no right answer.

Mechanism: without a GPU a source with inline PTX makes the solution skipped, and a build may be asked for at any time.
This solution answers the first call. Later, for inputs with signs that it can't handle, it asks for such a build in
place of a wrong answer, so that nobody sees one. Caught as a failure, because it has shown that it runs here.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "inline PTX"

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAStream.h>

__global__ void lane_kernel(int* out) { asm volatile("mov.u32 %0, %laneid;" : "=r"(*out)); }

int seven() { return 7; }
"""


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > 1 and bool((diagonal < 0).any() or (matrix < 0).any()):
            load_inline(name="lane", cpp_sources="int seven();", cuda_sources=CUDA_SOURCE, functions=["seven"])
            raise RuntimeError("inline PTX is of no use")
        return kernels.scale_rows(diagonal, matrix)
