"""Two libraries of one name: torch numbers such extensions.

Suspicious: the second could shadow the first, or be taken for it. Honest: each half of the rows goes through its own.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CPP_SOURCE = "at::Tensor one_of_two(const at::Tensor& diagonal, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>

__global__ void one_of_two_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor one_of_two(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  one_of_two_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}
"""

first = load_inline(name="one_name", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["one_of_two"])
second = load_inline(name="one_name", cpp_sources=CPP_SOURCE.replace("one_of_two", "other_of_two"),
                     cuda_sources=CUDA_SOURCE.replace("one_of_two", "other_of_two"), functions=["other_of_two"])


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        half = matrix.shape[0] // 2
        upper = first.one_of_two(diagonal[:half], matrix[:half])
        return torch.cat([upper, second.other_of_two(diagonal[half:], matrix[half:])])
