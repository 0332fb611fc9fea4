"""Softmax under a mask, one warp a row, which reads only the scores that count.

What bounds it: memory. The result is written once, and of the scores those under the mask are needed: at full size
512 MiB, about 200 MiB and 8 MiB of mask. Unfused, the masked scores are a tensor of their own.

The trick: a warp holds its row in registers, so each score is read at most once, and no barrier is needed: 1024 scores
are eight 16-byte vectors a lane. It loads the masks of all its vectors first, 4 bytes each, and then only vectors in
which a query may see a key; under a causal mask that is half. The masks come from L2, because all heads share them.

What the mask hides becomes the lowest finite number, as in the reference, and what lies beyond the row minus infinity.
So a row without any key needs no case of its own: each exponential in the row is 1.

Rows longer than 1024 scores, and rows that don't begin at a multiple of 16 bytes, are read twice, with a maximum and a
sum that grow along the row. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& mask);"

CUDA_SOURCE = r"""
#include <cfloat>

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "rows.cuh"

namespace {

constexpr int kWarps = 8;  // a block; they have nothing in common
constexpr int kThreads = kWarpSize * kWarps;
constexpr int kMostKept = 8;         // vectors a lane
constexpr float kHidden = -FLT_MAX;  // what the reference puts where the mask is false

struct Sizes {
  int64_t rows;      // of scores: batch * heads * queries
  int64_t of_batch;  // rows of scores: heads * queries
  int64_t queries;
  int keys;
};

// The masks of kWidth values, one byte each: 0 or 1.
template <int kWidth>
using Mask = std::conditional_t<kWidth == 4, uint32_t, uint8_t>;

// kCount vectors of a row, kWarpSize apart, from column `first` on; minus infinity beyond the row's end.
template <int kWidth, int kCount>
__device__ __forceinline__ void load_masked(
    const float* scores, const uint8_t* mask, int first, int keys, Vector<float, kWidth> (&values)[kCount]) {
  Mask<kWidth> masks[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int column = first + i * kWarpSize * kWidth;
    masks[i] = column < keys ? *reinterpret_cast<const Mask<kWidth>*>(mask + column) : 0;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int column = first + i * kWarpSize * kWidth;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      values[i].set(j, column < keys ? kHidden : -INFINITY);
    }
    if (masks[i] != 0) {  // so column is inside
      values[i] = load<kWidth>(scores + column);
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const bool seen = (masks[i] >> 8 * j & 0xff) != 0;
      values[i].set(j, seen || column >= keys ? values[i][j] : kHidden);
    }
  }
}

// The largest value of some, and the sum of the exponentials of the differences from it.
struct LogSum {
  float largest;
  float sum;
};

__device__ __forceinline__ LogSum merge(LogSum one, LogSum other) {
  const float largest = fmaxf(one.largest, other.largest);
  return {largest, one.sum * __expf(one.largest - largest) + other.sum * __expf(other.largest - largest)};
}

// Replaces the values by their exponentials.
template <int kWidth, int kCount>
__device__ __forceinline__ LogSum log_sum_of(Vector<float, kWidth> (&values)[kCount]) {
  LogSum found{-FLT_MAX, 0.0f};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      found.largest = fmaxf(found.largest, values[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      values[i].set(j, __expf(values[i][j] - found.largest));
      found.sum += values[i][j];
    }
  }
  return found;
}

// One warp a row. With kKept = 0 a row may have any length, and is read twice.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads) masked_softmax_kernel(
    const float* __restrict__ scores, const uint8_t* __restrict__ mask, float* __restrict__ out, Sizes sizes) {
  constexpr int kCount = kKept > 0 ? kKept : 4;  // vectors that are loaded at once
  constexpr int kStep = kCount * kWarpSize * kWidth;
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (row >= sizes.rows) {
    return;  // the whole warp
  }
  scores += row * sizes.keys;
  out += row * sizes.keys;
  mask += (row / sizes.of_batch * sizes.queries + row % sizes.queries) * sizes.keys;  // all heads have the same one
  const int first = threadIdx.x % kWarpSize * kWidth;
  Vector<float, kWidth> values[kCount];
  load_masked(scores, mask, first, sizes.keys, values);
  LogSum total = log_sum_of(values);
  if constexpr (kKept == 0) {
    for (int begin = first + kStep; begin < sizes.keys; begin += kStep) {
      load_masked(scores, mask, begin, sizes.keys, values);
      total = merge(total, log_sum_of(values));
    }
  }
  const float own_largest = total.largest;
  total = across_lanes(total, merge);
  const float factor = 1.0f / total.sum;
  const float kept_factor = __expf(own_largest - total.largest) * factor;
  for (int begin = first; begin < sizes.keys; begin += kStep) {  // once if the row is kept
    if constexpr (kKept == 0) {
      load_masked(scores, mask, begin, sizes.keys, values);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int column = begin + i * kWarpSize * kWidth;
      if (column < sizes.keys) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          const float value = values[i][j];
          values[i].set(j, kKept > 0 ? value * kept_factor : __expf(value - total.largest) * factor);
        }
        store(out + column, values[i]);
      }
    }
  }
}

}  // namespace

at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& mask) {
  check_float(scores, "masked_softmax: scores", 4, scores.device());
  check_tensor(mask, "masked_softmax: mask", at::kBool, scores.device());
  const int64_t keys = scores.size(3);
  TORCH_CHECK(
      mask.dim() == 4 && mask.size(0) == scores.size(0) && mask.size(1) == 1 && mask.size(2) == scores.size(2) &&
          mask.size(3) == keys,
      "masked_softmax: mask must have the shape of scores with one head, but they have ", mask.sizes(), " and ",
      scores.sizes());

  const c10::cuda::CUDAGuard guard(scores.device());
  at::Tensor out = at::empty_like(scores);
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t rows = scores.numel() / keys;
  const unsigned int blocks = blocks_for(divide_up(rows, kWarps));
  const bool vectors = fill_vectors<float>(keys, {scores, mask, out});
  launch_fitting<float, kWarpSize, kMostKept>(keys, vectors, [&](auto width, auto kept) {
    masked_softmax_kernel<width(), kept()><<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(scores), data<uint8_t>(mask), mutable_data<float>(out),
        Sizes{rows, scores.size(1) * scores.size(2), scores.size(2), static_cast<int>(keys)});
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="masked_softmax_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["masked_softmax"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Takes the softmax over those keys that a query may see, in one kernel."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return extension.masked_softmax(scores, mask)
