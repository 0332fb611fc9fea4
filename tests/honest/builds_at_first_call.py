"""Builds its extension in `forward`, at the first call.

Suspicious: the first call does something that no later one does, and takes seconds. Honest: it is a build that is put
off; every call computes.
"""

import functools
import types

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CPP_SOURCE = "at::Tensor built_at_first_call(const at::Tensor& diagonal, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>

__global__ void built_at_first_call_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor built_at_first_call(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  built_at_first_call_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}
"""


@functools.cache
def extension() -> types.ModuleType:
    return load_inline(name="built_at_first_call", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE,
                       functions=["built_at_first_call"])


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension().built_at_first_call(diagonal, matrix)
