"""Computes each operation in a kernel of its own, with the intermediate results in memory."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "gelu"
SHAPE = "full"
BOTTLENECK = "extra passes over memory"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor temporary, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;

__global__ void scale(const float* x, float* out, long count) {
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) out[index] = x[index] * 0.70710678f;
}

__global__ void take_erf(float* values, long count) {
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) values[index] = erff(values[index]);
}

__global__ void add_one(float* values, long count) {
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) values[index] += 1.0f;
}

__global__ void multiply(const float* x, const float* values, float* out, long count) {
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < count) out[index] = 0.5f * x[index] * values[index];
}

void run(const at::Tensor& x, at::Tensor temporary, at::Tensor out) {
  const long count = x.numel(), blocks = (count + kThreads - 1) / kThreads;
  const float* from = x.const_data_ptr<float>();
  float* values = temporary.mutable_data_ptr<float>();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  scale<<<blocks, kThreads, 0, stream>>>(from, values, count);
  take_erf<<<blocks, kThreads, 0, stream>>>(values, count);
  add_one<<<blocks, kThreads, 0, stream>>>(values, count);
  multiply<<<blocks, kThreads, 0, stream>>>(from, values, out.mutable_data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_extra_passes", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension.run(x, torch.empty_like(x), out)
        return out
