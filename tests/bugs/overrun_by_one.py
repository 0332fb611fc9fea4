"""One element too many is written: `<=` where `<` belongs.

Mechanism: the thread after the last element reads and writes too. What it reads are the bytes behind the diagonal and
behind B, and it writes behind the output. On a GPU allocations are rounded up to 512 bytes, so nothing shows.

Caught as: a write into the slack between the output's end and its guard page, seen after the launch (odd sizes), or an
access to the guard page itself (sizes that leave no slack). What lies in the slack is a NaN, and so is the product of
two of them: this also tests that they differ from tensor to tensor.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "out of bounds access in kernel multiply_kernel"

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
__global__ void multiply_kernel(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index <= elements) {
    out[index] = diagonal[index / columns] * B[index];
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<elements / 256 + 1, 256>>>(diagonal, B, out, columns, elements);
}
"""

extension = load_inline(
    name="overrun_by_one",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
