"""Transposes without a tile: neighbouring threads store to addresses that lie a whole column apart."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "transpose"
SHAPE = "full"
BOTTLENECK = "uncoalesced access"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void transpose(const float* x, float* out, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) {
    out[static_cast<size_t>(column) * rows + row] = x[static_cast<size_t>(row) * columns + column];
  }
}

void run(const at::Tensor& x, at::Tensor out) {
  const int rows = x.size(0), columns = x.size(1);
  const dim3 blocks((columns + 31) / 32, (rows + 7) / 8);
  transpose<<<blocks, dim3(32, 8), 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="bottleneck_uncoalesced", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[1], x.shape[0], device=x.device)
        extension.run(x, out)
        return out
