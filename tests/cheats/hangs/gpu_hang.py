"""A kernel that never ends.

Caught by the time limit: the candidate doesn't answer, and killing its process takes the kernel off the GPU.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"
NEEDS_GPU = True

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

__global__ void wait_forever(volatile float* out) {
  while (out[0] == out[0] || out[0] != out[0]) {}
}

at::Tensor hang(const at::Tensor& diagonal, const at::Tensor& matrix) {
  at::Tensor out = at::empty_like(matrix);
  wait_forever<<<1, 32>>>(out.data_ptr<float>());
  return out;
}
"""

extension = load_inline(
    name="gpu_hang",
    cpp_sources="at::Tensor hang(const at::Tensor& diagonal, const at::Tensor& matrix);",
    cuda_sources=CUDA_SOURCE,
    functions=["hang"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension.hang(diagonal, matrix)
