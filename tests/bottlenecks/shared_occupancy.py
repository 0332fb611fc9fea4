"""Keeps a row in 48 KB of shared memory for 64 threads, so an SM runs few threads, each with one load under way."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "layer_norm"
SHAPE = "full"
BOTTLENECK = "occupancy limited by shared memory"

CPP_SOURCE = """
void run(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out, double eps);
"""
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float block_sum(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[warp];
  return sum;
}

constexpr int kThreads = 64;
constexpr int kLongest = 12000;  // columns; with the partial sums about 48 KB, the most without an opt-in

__global__ void layer_norm(
    const float* x, const float* weight, const float* bias, float* out, int columns, float eps) {
  __shared__ float row[kLongest];
  __shared__ float partial[kThreads / 32];
  x += static_cast<size_t>(blockIdx.x) * columns;
  out += static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f;
#pragma unroll 1
  for (int column = threadIdx.x; column < columns; column += kThreads) {
    row[column] = x[column];
    sum += row[column];
  }
  const float mean = block_sum(sum, partial) / columns;
  sum = 0.0f;
#pragma unroll 1
  for (int column = threadIdx.x; column < columns; column += kThreads) {
    sum += (row[column] - mean) * (row[column] - mean);
  }
  const float scale = rsqrtf(block_sum(sum, partial) / columns + eps);
#pragma unroll 1
  for (int column = threadIdx.x; column < columns; column += kThreads) {
    out[column] = (row[column] - mean) * scale * weight[column] + bias[column];
  }
}

void run(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out, double eps) {
  layer_norm<<<x.size(0), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), x.size(1), eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_shared_occupancy", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, columns: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.run(x, self.weight, self.bias, out, self.eps)
        return out
