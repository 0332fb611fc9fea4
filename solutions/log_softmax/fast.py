"""Logarithm of the softmax, one block a row, the row kept in registers between its passes.

What bounds it: memory. Each value is read once and written once: 1 GiB at full size.

The trick: no result is known before the whole row has been read, but a row of 16384 values, 64 KB, fits the registers
of a block: 512 threads hold 32 values each, as eight independent 16-byte loads. At 64 registers two blocks share an
SM, so while one waits at its barriers or writes, the loads of the other, 64 KB, are under way.

The largest value of the row comes first, then the sum of the exponentials against it: exact, and without rescaling. The
result is (x - largest) - log(sum): with the two subtracted as one number, large values would round it.

Longer rows, up to 2^30 values, are read once for each pass, as are rows that don't all begin at a multiple of 16 bytes.
Short rows are correct, but leave most of the block idle. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor log_softmax(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <cfloat>

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "rows.cuh"

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 2;  // at most 64 registers: half of them for what is kept
constexpr int kMostKept = 8;     // vectors a thread

// One block a row.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) log_softmax_kernel(
    const float* __restrict__ x, float* __restrict__ out, int columns) {
  using Values = Vector<float, kWidth>;
  x += int64_t{blockIdx.x} * columns;
  out += int64_t{blockIdx.x} * columns;
  auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) { return load<kWidth>(x + column); });
  float largest = -FLT_MAX;  // finite, because the difference of two infinities would be NaN
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      largest = fmaxf(largest, values[i]);
    }
  });
  largest = across_block<kThreads>(largest, Maximum());
  float sum = 0.0f;
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      sum += __expf(values[i] - largest);
    }
  });
  const float log_sum = logf(across_block<kThreads>(sum, Sum()));
  row.each([&](Values& values, int column) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values.set(i, (values[i] - largest) - log_sum);
    }
    store(out + column, values);
  });
}

}  // namespace

at::Tensor log_softmax(const at::Tensor& x) {
  check_float(x, "log_softmax: x", 2, x.device());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const unsigned int rows = blocks_for(x.size(0));
  const bool vectors = fill_vectors<float>(columns, {x, out});
  launch_fitting<float, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    log_softmax_kernel<width(), kept()><<<rows, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(x), mutable_data<float>(out), static_cast<int>(columns));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="log_softmax_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["log_softmax"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Takes the logarithm of the softmax of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.log_softmax(x)
