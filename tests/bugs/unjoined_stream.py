"""Bug: the kernel runs on a stream of its own, and nothing waits for it.

The results are read on the current stream, perhaps before they are there.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "on a stream of its own, for which the default stream does not wait before the result is read"

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
  static cudaStream_t stream = nullptr;
  if (!stream) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  multiply_kernel<<<rows, 128, 0, stream>>>(diagonal, B, out, columns);
}
"""

extension = load_inline(
    name="unjoined_stream",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_diag(A, B)
