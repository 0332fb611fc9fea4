"""The first block prepares what all blocks use.

Mechanism: block 0 clears the sums, then every block adds to its own: right if block 0 has done so before any other
begins. Blocks have no order; on a GPU the first ones start together.

Caught as: a data race, because nothing orders the first block's write and another block's atomic.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "data race on `out` (global) in kernel multiply_kernel: "

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
  if (blockIdx.x == 0) {
    for (int index = threadIdx.x; index < elements; index += blockDim.x) {
      out[index] = 0.0f;
    }
  }
  __syncthreads();
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    atomicAdd(&out[index], diagonal[index / columns] * B[index]);
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<(elements + 255) / 256, 256>>>(diagonal, B, out, columns, elements);
}
"""

extension = load_inline(
    name="block_order",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
