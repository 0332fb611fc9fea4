"""Reads the diagonal at the element's index, where the row's belongs.

Mechanism: a forgotten division. All but the first elements read far behind the end of the diagonal. On a GPU that is
other tensors' memory, most of the time.

Caught as: an access to the guard page behind the diagonal; the message names kernel, block and thread.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "out of bounds access in kernel multiply_kernel, block ("

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
__global__ void multiply_kernel(const float* diagonal, const float* B, float* out, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = diagonal[index] * B[index];
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<(elements + 255) / 256, 256>>>(diagonal, B, out, elements);
}
"""

extension = load_inline(
    name="read_outside",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
