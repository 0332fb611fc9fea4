// Races in shared memory where the bytes happen to be equal.
#include "case.h"

// Every tile of zeros looks like the one before.
KERNEL(equal_tiles) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int step = 0; step < 2; ++step) {
    tile[t] = scratch[step * 64 + t];  // @equal_tiles
    __syncthreads();
    sum += tile[63 - t];  // @equal_tiles
    if (fixed) __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum;
}
PLANT(equal_tiles)

KERNEL(equal_flag) {
  __shared__ int empty;
  int t = threadIdx.x;
  if (t == 0) empty = 1;
  __syncthreads();
  if (t == 5) empty = 1;  // @equal_flag
  if (fixed) __syncthreads();
  if (t == 63) out[blockIdx.x] = empty;  // @equal_flag
}
PLANT(equal_flag)

// A tree whose last steps lack their barrier: all elements are 0.
KERNEL(equal_tree) {
  __shared__ float sums[64];
  int t = threadIdx.x;
  sums[t] = scratch[t];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];  // @equal_tree
    if (fixed) __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
PLANT(equal_tree)

// Notes: all threads write one value, and each uses its own.
KERNEL(own_value) {
  __shared__ float scale;
  int t = threadIdx.x;
  if (fixed) {
    if (t == 0) scale = 0.5f;
    __syncthreads();
  } else {
    scale = 0.5f;  // @own_value
  }
  out[blockIdx.x * 64 + t] = x[t] * scale;  // @own_value
}
PLANT(own_value)
