// What kernels of attention share: the softmax of scores that are the sums of tensor cores.
//
// Of 16 queries that a warp has, a thread has scores of two: `lane / 4` and the one eight further down. Of every eight
// keys it has two, from `lane % 4 * 2` on. So a row is spread over four threads, and scores[4 * i + 2 * row + j] is that
// of key 8 * i + j. Rounded to bfloat16, in pairs, these are the registers of a left operand for the product with the
// values.
#pragma once

#include <cuda_bf16.h>

#include "checks.cuh"

namespace {
namespace attention {

using Half = __nv_bfloat16;

constexpr int kWidth = 64;      // of a head in causal attention
constexpr float kSlack = 8.0f;  // powers of two by which a maximum may grow before sums are scaled

// Hides the keys that come after a query. `seen` is how far the thread's first query is behind the first key, if both
// are counted from those of lane 0 on.
template <int Count>
__device__ __forceinline__ void hide_future(float (&scores)[Count], int seen) {
  const int limit = seen + static_cast<int>(threadIdx.x) % kWarpSize / 4 - static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if (i / 4 * 8 + i % 2 > limit + i / 2 % 2 * 8) {
      scores[i] = -INFINITY;
    }
  }
}

__device__ __forceinline__ uint32_t rounded(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

template <int Count>
__device__ __forceinline__ void round_weights(uint32_t (&to)[Count / 8][4], const float (&weights)[Count]) {
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) {
    to[i / 4][i % 4] = rounded(weights[2 * i], weights[2 * i + 1]);
  }
}

// The running softmax of a thread's two rows.
struct Softmax {
  float maxima[2] = {-INFINITY, -INFINITY};  // of the rows so far, times the scale, or less by up to kSlack
  float sums[2] = {};                        // of this thread's weights

  // Makes weights of the scores of a tile. When a row's maximum grows, what was summed so far is scaled; `wait` comes
  // before that.
  template <int Count, int Values, class Wait>
  __device__ __forceinline__ void weigh(float (&scores)[Count], float scale, float (&values)[Values], Wait wait) {
    const float largest[2] = {largest_of(scores, 0) * scale, largest_of(scores, 1) * scale};
    if (__any_sync(kAllLanes, largest[0] > maxima[0] + kSlack || largest[1] > maxima[1] + kSlack)) {
      const float factors[2] = {raise(0, largest[0]), raise(1, largest[1])};
      wait();
#pragma unroll
      for (int i = 0; i < Values; ++i) {
        values[i] *= factors[i / 2 % 2];
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float parts[2] = {sums[row], 0.0f};
#pragma unroll
      for (int i = 2 * row; i < Count; i += 4) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          scores[i + j] = exp2f(scores[i + j] * scale - maxima[row]);
          parts[j] += scores[i + j];
        }
      }
      sums[row] = parts[0] + parts[1];
    }
  }

  template <int Count>
  static __device__ __forceinline__ float largest_of(const float (&scores)[Count], int row) {
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 2 * row; i < Count; i += 4) {
      largest[0] = fmaxf(largest[0], scores[i]);
      largest[1] = fmaxf(largest[1], scores[i + 1]);
    }
    return fmaxf(largest[0], largest[1]);
  }

  // The four threads of a row agree on its maximum. Returns the factor for what was summed before.
  __device__ __forceinline__ float raise(int row, float largest) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    if (!(largest > maxima[row] + kSlack)) {
      return 1.0f;
    }
    const float factor = exp2f(maxima[row] - largest);
    maxima[row] = largest;
    sums[row] *= factor;
    return factor;
  }

  // Writes the warp's 16 rows of results, from `row` of a head on, as far as it has them.
  __device__ __forceinline__ void write(const float (&values)[kWidth / 2], Half* head, int row, int length) const {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums[half];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      const float factor = 1.0f / sum;
      const int query = row + lane / 4 + 8 * half;
      if (query < length) {
        Half* const to = head + static_cast<int64_t>(query) * kWidth + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < kWidth / 8; ++i) {
          const float* const from = values + 4 * i + 2 * half;
          *reinterpret_cast<uint32_t*>(to + 8 * i) = rounded(from[0] * factor, from[1] * factor);
        }
      }
    }
  }
};

}  // namespace attention
}  // namespace
