// Data that a flag or a counter announces, without the fence that orders them.
#include "case.h"

KERNEL(last_block) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    out[blockIdx.x] = x[blockIdx.x];  // @last_block
    if (fixed) __threadfence();
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (fixed) __threadfence();
  if (last && t < gridDim.x) out[64 + t] = out[t];  // @last_block
}
PLANT(last_block)

// All threads write, but only the first one's writes are ordered before the counter: there is no barrier.
KERNEL(other_threads) {
  __shared__ bool last;
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @other_threads
  if (fixed) __syncthreads();
  if (t == 0) {
    __threadfence();
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
  }
  __syncthreads();
  __threadfence();
  if (last && t == 0)
    for (int i = 0; i < 256; ++i) out[512] += out[i];  // @other_threads
}
PLANT(other_threads)

KERNEL(fence_of_a_block) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    out[blockIdx.x] = x[blockIdx.x];  // @fence_of_a_block
    if (fixed)
      __threadfence();
    else
      __threadfence_block();
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
  }
  __syncthreads();
  __threadfence();
  if (last && t < gridDim.x) out[64 + t] = out[t];  // @fence_of_a_block
}
PLANT(fence_of_a_block)

KERNEL(fence_too_late) {
  int t = threadIdx.x;
  if (t != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @fence_too_late
  if (fixed) __threadfence();
  bool last = atomicAdd(scratch, 1) == gridDim.x - 1;
  __threadfence();
  if (last)
    for (int i = 0; i < gridDim.x; ++i) out[64 + i] = out[i];  // @fence_too_late
}
PLANT(fence_too_late)

// A flag in shared memory, from one warp to the other.
KERNEL(volatile_flag) {
  __shared__ volatile int ready;
  __shared__ float value;
  int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t == 0) {
    value = x[0];  // @volatile_flag
    if (fixed) __threadfence_block();
    ready = 1;
  } else if (t >= 32 && ready) {
    __threadfence_block();
    out[blockIdx.x * 64 + t] = value;  // @volatile_flag
  }
}
PLANT(volatile_flag)
