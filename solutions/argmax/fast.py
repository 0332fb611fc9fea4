"""Argmax of each row, one block a row: first the largest value of each 16-byte vector, then one vector looked through.

What bounds it: memory. Every value is read once, 2 bytes, and next to nothing is written. At 2 bytes a value the GPU
has only about a dozen instructions a value to spend, so the comparison has to be cheap.

The trick is to find the place in two steps. While a row streams by, a thread takes the maximum of the eight bfloat16
values of a vector, without converting them, and keeps the largest such maximum with the number of its vector: some two
instructions a value, and no branch. The block then agrees on the largest maximum and, among equal
ones, on the first vector. A vector is eight neighbours, so the first vector holds the first value; one thread reads
that vector again and looks for its place.

A NaN beats all numbers, as in torch: the maximum passes a NaN on, and the comparisons know it. The zeros of both signs
are equal, since values are compared as floats.

A thread's round is four independent 16-byte loads; with 256 threads a block and full SMs some 100 KB an SM are under
way, where about 40 KB are needed. A row whose length is no multiple of eight, or a misaligned tensor, is read one
value at a time.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor argmax(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <limits>

#include <cuda_bf16.h>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "checks.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kPerThread = 4;  // independent loads a thread
constexpr int64_t kMaxColumns = std::numeric_limits<int32_t>::max();  // places in a row are 32-bit numbers

// Eight values of 2 bytes: what one load takes.
struct alignas(16) Vector8 {
  __nv_bfloat16 values[8];
};

__device__ __forceinline__ Vector8 load(const Vector8* address) {
  const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(address));
  return *reinterpret_cast<const Vector8*>(&bits);
}

__device__ __forceinline__ __nv_bfloat16 load(const __nv_bfloat16* address) {
  return *address;
}

// The largest value; NaN if there is one.
__device__ __forceinline__ float largest(Vector8 vector) {
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {  // a tree: seven maxima, three deep
#pragma unroll
    for (int i = 0; i < half; ++i) {
      vector.values[i] = __hmax_nan(vector.values[i], vector.values[i + half]);
    }
  }
  return __bfloat162float(vector.values[0]);
}

__device__ __forceinline__ float largest(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

// Whether a value beats another: it is larger, or the first NaN.
__device__ __forceinline__ bool beats(float value, float other) {
  return value > other || (isnan(value) && !isnan(other));
}

// A value with the number of the vector that it comes from.
struct Candidate {
  float value;
  int vector;
};

__device__ __forceinline__ Candidate better(Candidate one, Candidate other) {
  const bool equal = !beats(one.value, other.value) && !beats(other.value, one.value);
  const bool take_other = equal ? other.vector < one.vector : beats(other.value, one.value);
  return take_other ? other : one;
}

__device__ __forceinline__ Candidate best_of_warp(Candidate best) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    const Candidate other = {
        __shfl_xor_sync(kAllLanes, best.value, offset), __shfl_xor_sync(kAllLanes, best.vector, offset)};
    best = better(best, other);
  }
  return best;
}

// The place of a value in the vector that holds it.
__device__ __forceinline__ int place_in(const Vector8& vector, float value) {
  int place = 0;
#pragma unroll
  for (int i = 7; i >= 0; --i) {  // backwards, so that the first place is the one that stays
    if (!beats(value, __bfloat162float(vector.values[i]))) place = i;
  }
  return place;
}

__device__ __forceinline__ int place_in(__nv_bfloat16, float) {
  return 0;
}

// Vector is Vector8, or __nv_bfloat16 where rows don't fill vectors or x is misaligned. One block a row.
template <typename Vector>
__global__ void __launch_bounds__(kThreads) argmax_kernel(
    const Vector* __restrict__ x, int64_t* __restrict__ out, int row_vectors) {
  constexpr int kWidth = sizeof(Vector) / sizeof(__nv_bfloat16);
  __shared__ Candidate partial[kWarps];
  const Vector* row = x + static_cast<int64_t>(blockIdx.x) * row_vectors;

  // A row of nothing but -inf, and a thread without a vector: what is never beaten stays at -inf. The number of such a
  // thread is one that no vector has, so that any real candidate wins the tie.
  Candidate best = {-INFINITY, row_vectors};
  int64_t index = threadIdx.x;  // 64 bits, as it may pass the end of a row by a round
  if (index < row_vectors) best.vector = static_cast<int>(index);
  for (; index + (kPerThread - 1) * kThreads < row_vectors; index += kPerThread * kThreads) {
    Vector values[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      values[i] = load(row + index + i * kThreads);
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const float value = largest(values[i]);
      if (beats(value, best.value)) best = {value, static_cast<int>(index) + i * kThreads};
    }
  }
  for (; index < row_vectors; index += kThreads) {
    const float value = largest(load(row + index));
    if (beats(value, best.value)) best = {value, static_cast<int>(index)};
  }

  best = best_of_warp(best);
  const int lane = threadIdx.x % kWarpSize;
  if (lane == 0) {
    partial[threadIdx.x / kWarpSize] = best;
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) {
    best = best_of_warp(partial[lane % kWarps]);  // some lanes hold the same candidate, which changes nothing
    if (lane == 0) {
      out[blockIdx.x] = static_cast<int64_t>(best.vector) * kWidth + place_in(load(row + best.vector), best.value);
    }
  }
}

template <typename Vector>
void launch(const void* x, int64_t* out, int64_t rows, int64_t columns) {
  const int64_t row_vectors = columns * sizeof(__nv_bfloat16) / sizeof(Vector);
  argmax_kernel<Vector><<<static_cast<unsigned int>(rows), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<const Vector*>(x), out, static_cast<int>(row_vectors));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor argmax(const at::Tensor& x) {
  check_tensor(x, "argmax: x", at::kBFloat16, x.device());
  TORCH_CHECK(x.dim() == 2, "argmax: x must be (rows, columns), but its shape is ", x.sizes());
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  TORCH_CHECK(rows == 0 || columns > 0, "argmax: a row without values has no largest one; the shape is ", x.sizes());
  TORCH_CHECK(rows <= kMaxBlocks, "argmax: ", rows, " rows are too many for one launch");
  TORCH_CHECK(columns <= kMaxColumns, "argmax: rows of ", columns, " values are too long");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({rows}, x.options().dtype(at::kLong));
  if (rows == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const void* from = x.const_data_ptr();
  if (columns % 8 == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(Vector8) == 0) {
    launch<Vector8>(from, out.mutable_data_ptr<int64_t>(), rows, columns);
  } else {
    launch<__nv_bfloat16>(from, out.mutable_data_ptr<int64_t>(), rows, columns);
  }
  return out;
}
"""

extension = load_inline(
    name="argmax_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["argmax"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Finds the largest value of each row."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.argmax(x)
