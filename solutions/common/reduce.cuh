// Reductions over the lanes of a warp and the threads of a block, in a fixed order: equal inputs give equal bits.
//
// Values may be of any type made of 32-bit words, such as a float or a struct of some. An operation is a function of
// two of them.
#pragma once

#include <cstring>

#include "checks.cuh"

namespace {

struct Sum {
  __device__ __forceinline__ float operator()(float one, float other) const { return one + other; }
};

struct Maximum {
  __device__ __forceinline__ float operator()(float one, float other) const { return fmaxf(one, other); }
};

// What the lane at this distance has.
template <typename Value>
__device__ __forceinline__ Value of_lane(const Value& own, int distance) {
  constexpr int kWords = sizeof(Value) / sizeof(int);
  int words[kWords];
  memcpy(words, &own, sizeof(Value));
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words[i] = __shfl_xor_sync(kAllLanes, words[i], distance);
  }
  Value other;
  memcpy(&other, words, sizeof(Value));
  return other;
}

// Combines the values of kLanes neighbouring lanes, for each of them. The whole warp must call it.
template <int kLanes = kWarpSize, typename Value, typename Operation>
__device__ __forceinline__ Value across_lanes(Value value, Operation operation) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = operation(value, of_lane(value, distance));
  }
  return value;
}

// Combines the values of all threads, for each of them. All kThreads of the block must call it. A kernel that calls it
// again with the same types has to set kAgain: then it waits until all threads have read the last result.
template <int kThreads, bool kAgain = false, typename Value, typename Operation>
__device__ __forceinline__ Value across_block(Value value, Operation operation) {
  constexpr int kWarps = kThreads / kWarpSize;
  constexpr int kWords = sizeof(Value) / sizeof(int);
  __shared__ int of_warps[kWarps][kWords];
  value = across_lanes(value, operation);
  if constexpr (kAgain) {
    __syncthreads();
  }
  if (threadIdx.x % kWarpSize == 0) {
    memcpy(of_warps[threadIdx.x / kWarpSize], &value, sizeof(Value));
  }
  __syncthreads();
  memcpy(&value, of_warps[threadIdx.x % kWarps], sizeof(Value));  // each warp does it for itself: no second barrier
  return across_lanes<kWarps>(value, operation);
}

}  // namespace
