"""Takes ten times as long for rows whose first values have different signs.

Suspicious: the times depend on the inputs. Honest: every output is right. The slowest inputs decide the reported time.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void scale_kernel(const float* diagonal, const float* matrix, volatile float* out, int columns) {
  const float* row = matrix + static_cast<int64_t>(blockIdx.x) * columns;
  volatile float* target = out + static_cast<int64_t>(blockIdx.x) * columns;
  bool mixed = false;
  for (int column = 1; column < min(columns, 64); ++column) mixed = mixed || (row[column] < 0.f) != (row[0] < 0.f);
  for (int time = 0; time < (mixed ? 10 : 1); ++time) {
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
      target[column] = diagonal[blockIdx.x] * row[column];
    }
  }
}

// diagonal (M,) and matrix (M, N), contiguous float32; returns diag(diagonal) @ matrix.
at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& matrix) {
  at::Tensor out = at::empty_like(matrix);
  const int rows = static_cast<int>(matrix.size(0)), columns = static_cast<int>(matrix.size(1));
  scale_kernel<<<rows, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), matrix.const_data_ptr<float>(), out.mutable_data_ptr<float>(), columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="slow_on_mixed_signs",
    cpp_sources="at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& matrix);",
    cuda_sources=CUDA_SOURCE,
    functions=["scale"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension.scale(diagonal, matrix)
