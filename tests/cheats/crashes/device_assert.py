"""A kernel whose assertion fails.

Mechanism: as an illegal address: from then on every CUDA call of the process fails, and what the kernel was to write
stays as it was. Caught as the candidate's own error.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "device-side assert triggered"
NEEDS_GPU = True

CUDA_SOURCE = r"""
#undef NDEBUG
#include <cassert>

#include <ATen/core/Tensor.h>

__global__ void insist_kernel(const float* value) { assert(*value != *value); }

void insist(const at::Tensor& tensor) { insist_kernel<<<1, 1>>>(tensor.const_data_ptr<float>()); }
"""

extension = load_inline(
    name="device_assert",
    cpp_sources="void insist(const at::Tensor& tensor);",
    cuda_sources=CUDA_SOURCE,
    functions=["insist"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        extension.insist(matrix)
        return diagonal[:, None] * matrix
