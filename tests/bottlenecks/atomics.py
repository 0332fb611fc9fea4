"""Each warp takes its next 32 elements by an atomic addition to one counter."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "gelu"
SHAPE = "full"
BOTTLENECK = "atomics on one address"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor next, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float gelu(float x) {
  return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}

constexpr int kThreads = 256;
constexpr int kBlocks = 1056;

__global__ void gelu_kernel(const float* x, int* next, float* out, long count) {
  const int lane = threadIdx.x % 32;
  while (true) {
    int taken = lane == 0 ? atomicAdd(next, 1) : 0;
    taken = __shfl_sync(0xffffffffu, taken, 0);
    const long begin = static_cast<long>(taken) * 32;
    if (begin >= count) return;
    if (begin + lane < count) out[begin + lane] = gelu(x[begin + lane]);
  }
}

void run(const at::Tensor& x, at::Tensor next, at::Tensor out) {
  const long count = x.numel();
  const int blocks = count < kBlocks * kThreads ? (count + kThreads - 1) / kThreads : kBlocks;
  gelu_kernel<<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), next.mutable_data_ptr<int>(), out.mutable_data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_atomics", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.run(x, torch.zeros(1, dtype=torch.int32, device=x.device), out)
        return out
