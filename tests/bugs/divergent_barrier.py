"""A barrier in a branch that only a part of the block takes.

Mechanism: the threads whose element exists load it, wait, and write; the others skip all of that and wait at the next
barrier. On a GPU this is undefined: it may hang, or go on with half of the block.

Caught as: threads of one block waiting at different barriers. The last block has such threads at every odd size.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "barrier divergence at multiply_kernel, line"

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
  __shared__ float held[256];
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < elements) {
    held[threadIdx.x] = diagonal[index / columns];
    __syncthreads();
    out[index] = held[threadIdx.x] * B[index];
  }
  __syncthreads();
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<(elements + 255) / 256, 256>>>(diagonal, B, out, columns, elements);
}
"""

extension = load_inline(
    name="divergent_barrier",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
