"""Writes PYBIND11_MODULE by hand, in the CUDA source, and passes no `functions`.

Suspicious: no wrapper of the harness's or torch's is in between. Honest: torch allows it.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

__global__ void by_hand_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor by_hand(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  by_hand_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale_rows", &by_hand, "diag(diagonal) @ B"); }
"""

extension = load_inline(name="by_hand", cpp_sources="", cuda_sources=CUDA_SOURCE)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension.scale_rows(diagonal, matrix)
