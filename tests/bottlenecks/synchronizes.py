"""Sums the rows in up to 64 parts and waits for the device after each."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "row_sum"
SHAPE = "full"
BOTTLENECK = "needless synchronization"

CPP_SOURCE = "void run(const at::Tensor& x, at::Tensor out);"
CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float block_sum(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[warp];
  return sum;
}

constexpr int kThreads = 256;
constexpr int kParts = 64;

__global__ void row_sum(const float* x, float* out, int columns) {
  __shared__ float partial[kThreads / 32];
  x += static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < columns; column += kThreads) sum += x[column];
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

void run(const at::Tensor& x, at::Tensor out) {
  const int rows = x.size(0), columns = x.size(1), each = (rows + kParts - 1) / kParts;
  for (int row = 0; row < rows; row += each) {
    const int some = row + each < rows ? each : rows - row;
    row_sum<<<some, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.const_data_ptr<float>() + static_cast<size_t>(row) * columns, out.mutable_data_ptr<float>() + row, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    C10_CUDA_CHECK(cudaDeviceSynchronize());
  }
}
"""

extension = load_inline(
    name="bottleneck_synchronizes", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        extension.run(x, out)
        return out
