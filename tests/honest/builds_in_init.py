"""Builds its extension in the constructor, and asks for a folder of its own for it.

Suspicious: nothing is there to build when the file is imported. Honest: many solutions are written this way.
"""

import os

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CPP_SOURCE = "at::Tensor built_in_init(const at::Tensor& diagonal, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>

__global__ void built_in_init_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor built_in_init(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  built_in_init_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}
"""


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        os.makedirs("build", exist_ok=True)
        self.extension = load_inline(
            name="built_in_init", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["built_in_init"],
            extra_cuda_cflags=["-O3", "--use_fast_math"], build_directory="build", verbose=True,
        )

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return self.extension.built_in_init(diagonal, matrix)
