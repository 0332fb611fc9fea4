"""No bug, but not for the CPU either: a part of a library that has no stand-in there.

Found when the source is translated; the reason names the part and the line in this file that uses it.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "skipped"
CAUGHT_BY = "cub::BlockShuffle"

CPP_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void launch(const float* diagonal, const float* B, float* out, int rows, int columns);

at::Tensor matmul_diag(const at::Tensor& A, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  launch(A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), B.size(0), B.size(1));
  return out;
}
"""

CUDA_SOURCE = r"""
#include <cub/cub.cuh>

__global__ void multiply_kernel(const float* diagonal, const float* B, float* out, int columns) {
  using Shuffle = cub::BlockShuffle<float, 64>;  // refused
  float value = 0.0f, own;
  const int start = blockIdx.x * columns + blockIdx.y * 64;
  if (blockIdx.y * 64 + threadIdx.x < columns) value = B[start + threadIdx.x];
  Shuffle().Offset(value, own, 0);
  if (blockIdx.y * 64 + threadIdx.x < columns) out[start + threadIdx.x] = diagonal[blockIdx.x] * own;
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  multiply_kernel<<<dim3(rows, (columns + 63) / 64), 64>>>(diagonal, B, out, columns);
}
"""

extension = load_inline(
    name="cub_shuffle",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
