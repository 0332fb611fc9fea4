"""Row sums, one block a row.

What bounds it: memory. Every value is read once for one addition, so the best time is that of reading the matrix; what
is written doesn't count.

The trick is to keep enough reads under way. A thread's round is eight 16-byte loads that don't depend on each other:
256 threads then take a row of 8192 values in one round. The blocks' phases interleave, so that one adds while others
wait for their loads, and the many short blocks leave next to no idle SMs at the end. Values stay out of L1
(`load_once`), which saves 3 % on an H100.

The sums of the threads meet by shuffles within each warp, then in shared memory. That order is fixed: the same input
gives the same bits. A row whose length is no multiple of four, or a misaligned tensor, is read one element at a time.
Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor row_sum(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "rows.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;  // independent loads a thread

// One block a row.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) row_sum_kernel(
    const float* __restrict__ x, float* __restrict__ out, int64_t columns) {
  x += blockIdx.x * columns;
  float sum = 0.0f;
#pragma unroll kPerThread
  for (int64_t column = threadIdx.x * kWidth; column < columns; column += kThreads * kWidth) {
    const Vector<float, kWidth> values = load_once<kWidth>(x + column);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      sum += values[i];
    }
  }
  sum = across_block<kThreads>(sum, Sum());
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sum;
  }
}

}  // namespace

at::Tensor row_sum(const at::Tensor& x) {
  check_float(x, "row_sum: x", 2, x.device());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0)}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const auto kernel = fill_vectors<float>(columns, {x}) ? row_sum_kernel<4> : row_sum_kernel<1>;
  kernel<<<blocks_for(x.size(0)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      data<float>(x), mutable_data<float>(out), columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="row_sum_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["row_sum"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Sums each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.row_sum(x)
