"""Launches blocks of eight threads, a quarter of a warp."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "gelu"
SHAPE = "full"
BOTTLENECK = "tiny blocks"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

constexpr int kThreads = 8;

__global__ void gelu_kernel(const float* x, float* out, long count) {
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) out[index] = gelu(x[index]);
}

void run(const at::Tensor& x, at::Tensor out) {
  const long count = x.numel();
  gelu_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_tiny_blocks", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.run(x, out)
        return out
