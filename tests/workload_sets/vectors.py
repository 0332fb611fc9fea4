"""A kernel that scales rows with loads of four elements, which are only aligned where the length of a row allows it."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

// Each block computes a row. `vectors` of four elements are read at once, the rest one by one.
__global__ void vector_rows_kernel(const float* x, const float* weight, float* out, int columns, int vectors,
                                   float eps) {
  __shared__ float part[128];
  const float* from = x + static_cast<long long>(blockIdx.x) * columns;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < vectors; j += 128) {
    float4 four = reinterpret_cast<const float4*>(from)[j];
    sum += four.x * four.x + four.y * four.y + four.z * four.z + four.w * four.w;
  }
  for (int j = 4 * vectors + threadIdx.x; j < columns; j += 128) sum += from[j] * from[j];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  float scale = rsqrtf(part[0] / columns + eps);
  for (int j = threadIdx.x; j < columns; j += 128)
    out[static_cast<long long>(blockIdx.x) * columns + j] = from[j] * scale * weight[j];
}

void vector_rows(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out, int64_t vectors) {
  TORCH_CHECK(x.is_contiguous() && out.sizes() == x.sizes());
  vector_rows_kernel<<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(1), vectors,
      1e-6f);
}
"""

extension = load_inline(
    name="vector_rows",
    cpp_sources="void vector_rows(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out, int64_t vectors);",
    cuda_sources=SOURCE,
    functions=["vector_rows"],
)


def launch(x, weight, vectors):
    """Computes the rows with this many loads of four elements in each."""
    out = torch.empty_like(x)
    extension.vector_rows(x, weight, out, vectors)
    return out
