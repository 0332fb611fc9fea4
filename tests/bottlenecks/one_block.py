"""Sums all rows in a single block."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "row_sum"
SHAPE = "full"
BOTTLENECK = "too few blocks"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 1024;

__global__ void row_sum(const float* x, float* out, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < rows; row += kThreads / 32) {
    float sum = 0.0f;
    for (int column = lane; column < columns; column += 32) sum += x[static_cast<size_t>(row) * columns + column];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) out[row] = sum;
  }
}

void run(const at::Tensor& x, at::Tensor out) {
  row_sum<<<1, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_one_block", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        extension.run(x, out)
        return out
