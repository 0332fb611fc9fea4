"""The kernels that all solutions of `row_sums` launch, with what makes their bits vary as arguments."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

// A thread for each row, a block for each part of the columns. `alternating` sums odd rows from the end.
__global__ void parts_kernel(const float* x, float* sums, int rows, int columns, bool alternating) {
  int row = threadIdx.x, part = blockIdx.x, parts = gridDim.x;
  if (row >= rows) return;
  bool from_end = alternating && row % 2;
  float sum = 0.0f;
  for (int i = part; i < columns; i += parts) {
    int column = from_end ? columns - 1 - i : i;
    sum += x[row * columns + column];
  }
  sums[row * parts + part] = sum;
}

__global__ void add_atomically(const float* sums, float* out, int rows) {
  int row = threadIdx.x;
  if (row < rows) atomicAdd(out + row, sums[row * gridDim.x + blockIdx.x]);
}

// Adds `ulps` units in the last place.
__global__ void add_in_order(const float* sums, float* out, int rows, int parts, int ulps) {
  int row = threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int part = 0; part < parts; ++part) sum += sums[row * parts + part];
  out[row] = __int_as_float(__float_as_int(sum) + ulps);
}

void row_sums(const at::Tensor& x, at::Tensor& sums, at::Tensor& out, bool atomic, bool alternating, int64_t ulps) {
  TORCH_CHECK(x.is_contiguous() && x.size(0) <= 64);
  auto stream = at::cuda::getCurrentCUDAStream();
  int rows = x.size(0), parts = sums.size(1);
  parts_kernel<<<parts, 64, 0, stream>>>(
      x.const_data_ptr<float>(), sums.mutable_data_ptr<float>(), rows, x.size(1), alternating);
  if (atomic)
    add_atomically<<<parts, 64, 0, stream>>>(sums.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows);
  else
    add_in_order<<<1, 64, 0, stream>>>(
        sums.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, parts, ulps);
}
"""

extension = load_inline(
    name="row_sums",
    cpp_sources="void row_sums(const at::Tensor& x, at::Tensor& sums, at::Tensor& out, bool atomic, bool alternating, "
                "int64_t ulps);",
    cuda_sources=SOURCE,
    functions=["row_sums"],
)


def row_sums(x, parts=16, atomic=False, alternating=False, ulps=0):
    """Returns the sums of rows. By default, their bits depend on the row alone."""
    out = torch.zeros(x.shape[0], device=x.device)
    extension.row_sums(x, torch.empty(x.shape[0], parts, device=x.device), out, atomic, alternating, ulps)
    return out
