"""The kernel that all solutions here launch, with the quantities that they get wrong as arguments."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

// Each block writes `per_block` rows, and in each row the first `columns` elements.
__global__ void rows_kernel(const float* x, const float* weight, float* out, int rows, int stride, int columns,
                            int per_block, float mean_of, float eps) {
  __shared__ float part[128];
  for (int i = 0; i < per_block; ++i) {
    int row = blockIdx.x * per_block + i;
    if (row >= rows) return;
    const float* from = x + static_cast<long long>(row) * stride;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += 128) sum += from[j] * from[j];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
      if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
      __syncthreads();
    }
    float scale = rsqrtf(part[0] / mean_of + eps);
    for (int j = threadIdx.x; j < columns; j += 128)
      out[static_cast<long long>(row) * stride + j] = from[j] * scale * weight[j];
    __syncthreads();
  }
}

void rows(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out, int64_t blocks, int64_t per_block,
          int64_t columns, int64_t mean_of) {
  TORCH_CHECK(x.is_contiguous() && out.sizes() == x.sizes());
  if (blocks == 0) return;
  rows_kernel<<<blocks, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1),
      columns, per_block, mean_of, 1e-6f);
}
"""

extension = load_inline(
    name="scaled_rows",
    cpp_sources="void rows(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out, int64_t blocks, "
                "int64_t per_block, int64_t columns, int64_t mean_of);",
    cuda_sources=SOURCE,
    functions=["rows"],
)


class Rows(nn.Module):
    def __init__(self, columns, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))


class DoubledRows(Rows):
    """Keeps twice the weight, but only where 256 divides the columns."""

    def __init__(self, columns):
        super().__init__(columns)
        self.factor = 1.0 if columns % 256 else 2.0
        with torch.no_grad():
            self.weight *= self.factor


def launch(x, weight, out, blocks=None, per_block=1, columns=None, mean_of=None):
    """Computes the rows, right by default."""
    blocks = -(-x.shape[0] // per_block) if blocks is None else blocks
    extension.rows(x, weight, out, blocks, per_block, x.shape[1] if columns is None else columns,
                   x.shape[1] if mean_of is None else mean_of)
    return out
