"""An operator of torch's dispatcher, in a library that is no Python module.

Suspicious: nothing is imported, and the kernel is reached through `torch.ops`. Honest: `is_python_module=False` is for
this.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

__global__ void dispatched_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor dispatched(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  dispatched_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}

TORCH_LIBRARY(inlinebench_honest, m) { m.def("scale_rows", &dispatched); }
"""

load_inline(name="dispatched", cpp_sources="", cuda_sources=CUDA_SOURCE, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.ops.inlinebench_honest.scale_rows(diagonal, matrix)
