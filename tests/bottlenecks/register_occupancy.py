"""Keeps a table of 192 coefficients in the registers of each thread, so an SM runs one block, with one load per thread
under way.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "gelu"
SHAPE = "full"
BOTTLENECK = "occupancy limited by registers"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

constexpr int kThreads = 256;
constexpr int kTable = 192;
constexpr int kEach = 64;  // elements of a thread

__device__ volatile float table[kTable];  // zeros
__device__ float correction;

__global__ void gelu_kernel(const float* x, float* out, long count) {
  float coefficients[kTable];
#pragma unroll
  for (int k = 0; k < kTable; ++k) coefficients[k] = table[k];
  float last = 0.0f;
  const long begin = static_cast<long>(blockIdx.x) * kThreads * kEach + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < kEach; ++i) {
    const long index = begin + i * kThreads;
    if (index >= count) break;
    last = x[index];
    out[index] = gelu(last);
  }
  float value = 0.0f;
#pragma unroll
  for (int k = 0; k < kTable; ++k) value = value * last + coefficients[k];
  if (value != 0.0f) correction = value;
}

void run(const at::Tensor& x, at::Tensor out) {
  const long count = x.numel();
  const long blocks = (count + kThreads * kEach - 1) / (kThreads * kEach);
  gelu_kernel<<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_register_occupancy", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.run(x, out)
        return out
