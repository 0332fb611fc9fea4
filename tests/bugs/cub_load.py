"""No bug, but not for the CPU either: a library that has no stand-in there.

Found when the source is translated; the reason names the library and the line in this file that uses it.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "skipped"
CAUGHT_BY = "cub"

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
  using Load = cub::BlockLoad<float, 64, 1, cub::BLOCK_LOAD_DIRECT>;  // refused
  float values[1];
  const int start = blockIdx.x * columns + blockIdx.y * 64;
  Load().Load(B + start, values, columns - blockIdx.y * 64, 0.0f);
  if (blockIdx.y * 64 + threadIdx.x < columns) {
    out[start + threadIdx.x] = diagonal[blockIdx.x] * values[0];
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  multiply_kernel<<<dim3(rows, (columns + 63) / 64), 64>>>(diagonal, B, out, columns);
}
"""

extension = load_inline(
    name="cub_load",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
