"""No bug, but not for the CPU either: a register that only a GPU has.

Found when the source is translated; the reason names the construct and its line in this file.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "skipped"
CAUGHT_BY = "inline PTX `smid` in `mov.u32`"

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
__device__ float product(float a, float b) {
  unsigned multiprocessor;
  asm volatile("mov.u32 %0, %smid;" : "=r"(multiprocessor));  // refused
  return multiprocessor == ~0u ? 0.0f : a * b;
}

__global__ void multiply_kernel(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = product(diagonal[index / columns], B[index]);
  }
}

void launch(const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  multiply_kernel<<<(elements + 255) / 256, 256>>>(diagonal, B, out, columns, elements);
}
"""

extension = load_inline(
    name="inline_ptx",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
