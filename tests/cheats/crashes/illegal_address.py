"""A kernel that writes to an address that nobody has.

Mechanism: the error stays with its process: from then on every CUDA call of it fails. A reference in the same process
would fail as well, and the problem would get the blame. Caught as the candidate's own error, and the next solution gets
a process of its own.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "illegal memory access"
NEEDS_GPU = True

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>

__global__ void write_nowhere_kernel(float* nowhere) { *nowhere = 1.f; }

void write_nowhere(const at::Tensor& like) { write_nowhere_kernel<<<1, 1>>>(like.data_ptr<float>() + (1ll << 45)); }
"""

extension = load_inline(
    name="illegal_address",
    cpp_sources="void write_nowhere(const at::Tensor& like);",
    cuda_sources=CUDA_SOURCE,
    functions=["write_nowhere"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        extension.write_nowhere(matrix)
        return diagonal[:, None] * matrix
