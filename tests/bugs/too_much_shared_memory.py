"""Bug: more dynamic shared memory than is allowed without cudaFuncSetAttribute.

The launch is refused, nothing runs, and the author does not ask for the error.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "102400>>> was not launched: at most 49152 bytes of dynamic shared memory are allowed"

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
__global__ void multiply_kernel(const float* diagonal, const float* B, float* out, int columns) {
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const int index = blockIdx.x * columns + column;
    out[index] = diagonal[blockIdx.x] * B[index];
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  multiply_kernel<<<rows, 256, 100 << 10>>>(diagonal, B, out, columns);
}
"""

extension = load_inline(
    name="too_much_shared_memory",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
