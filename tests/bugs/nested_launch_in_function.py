"""No bug, but not for the CPU either: a kernel that launches another, through a function for host and device.

Such a function may launch kernels on the host. Found when the source is translated, because a kernel calls it.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "skipped"
CAUGHT_BY = "a launch inside `multiply_rows_kernel` through `multiply_row`"

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
__global__ void multiply_row_kernel(float factor, const float* row, float* out, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) {
    out[column] = factor * row[column];
  }
}

__host__ __device__ void multiply_row(float factor, const float* row, float* out, int columns) {
  multiply_row_kernel<<<(columns + 63) / 64, 64>>>(factor, row, out, columns);
}

__global__ void multiply_rows_kernel(const float* diagonal, const float* B, float* out, int columns) {
  const int row = blockIdx.x;
  const int start = row * columns;
  multiply_row(diagonal[row], B + start, out + start, columns);  // refused
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  multiply_rows_kernel<<<rows, 1>>>(diagonal, B, out, columns);
}
"""

extension = load_inline(
    name="nested_launch_in_function",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
