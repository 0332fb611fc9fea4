"""Adds to shared memory as if it began as zeros.

Mechanism: each thread adds its product to an element of a shared array that nothing was written to. On a GPU it holds
what the block before left there, often zeros.

Caught as: NaN in the output, with which shared memory is filled when a block begins.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

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
  __shared__ float sum[256];
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < elements) {
    sum[threadIdx.x] += diagonal[index / columns] * B[index];
    out[index] = sum[threadIdx.x];
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<(elements + 255) / 256, 256>>>(diagonal, B, out, columns, elements);
}
"""

extension = load_inline(
    name="uninitialised_shared",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
