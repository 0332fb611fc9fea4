"""Keeps 64 values of a row in each thread, but __launch_bounds__ leaves 32 registers, so most values are spilled."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "layer_norm"
SHAPE = "full"
BOTTLENECK = "spills"

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

constexpr int kThreads = 128;
constexpr int kEach = 64;  // values of a thread: rows of up to 8192

__global__ void __launch_bounds__(kThreads, 16) layer_norm(
    const float* x, const float* weight, const float* bias, float* out, int columns, float eps) {
  __shared__ float partial[kThreads / 32];
  x += static_cast<size_t>(blockIdx.x) * columns;
  out += static_cast<size_t>(blockIdx.x) * columns;
  float values[kEach];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int column = i * kThreads + threadIdx.x;
    values[i] = column < columns ? x[column] : 0.0f;
    sum += values[i];
  }
  const float mean = block_sum(sum, partial) / columns;
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float centred = i * kThreads + threadIdx.x < columns ? values[i] - mean : 0.0f;
    values[i] = centred;
    sum += centred * centred;
  }
  const float scale = rsqrtf(block_sum(sum, partial) / columns + eps);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int column = i * kThreads + threadIdx.x;
    if (column < columns) out[column] = values[i] * scale * weight[column] + bias[column];
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
    name="bottleneck_spills", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


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
