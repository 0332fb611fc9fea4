"""Includes a header that doesn't exist, with the name of one that a CPU can't have.

Mechanism: CUTLASS, CUB and the like are no error on a machine without a GPU: a source that includes them is skipped. A
name that only looks like one of theirs is a failure of the source. Nothing of the library is used.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "build_failed"
CAUGHT_BY = "No such file"

CUDA_SOURCE = r"""
#include "cutlass_of_my_own/cub/block_reduce_mma_tma.cuh"

int seven() { return 7; }
"""

extension = load_inline(
    name="missing_header", cpp_sources="int seven();", cuda_sources=CUDA_SOURCE, functions=["seven"]
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.full_like(matrix, extension.seven())
