// Shuffles that read lanes which take no part.
#include "case.h"

KERNEL(outside_the_mask) {
  int t = threadIdx.x, lane = t % 32;
  float sum = x[blockIdx.x * 64 + t];
  if (lane < 24)
    for (int step = fixed ? 4 : 16; step > 0; step /= 2)
      sum += __shfl_xor_sync(0xffffff, sum, step);  // @outside_the_mask
  out[blockIdx.x * 64 + t] = sum;
}
PLANT(outside_the_mask)

// The block has 48 threads, so its second warp has 16.
KERNEL(beyond_the_block) {
  int t = threadIdx.x;
  float sum = x[t];
  unsigned mask = t < 32 ? 0xffffffffu : 0xffffu;
  for (int step = fixed && t >= 32 ? 8 : 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(mask, sum, step);  // @beyond_the_block
  out[blockIdx.x * 64 + t] = sum;
}
PLANT_ON(beyond_the_block, 4, 48, 0)

KERNEL(returned_lanes) {
  int t = threadIdx.x;
  if (!fixed && t % 32 == 31) return;
  float last = __shfl_sync(0xffffffffu, x[t], 31);  // @returned_lanes
  out[blockIdx.x * 64 + t] = last;
}
PLANT(returned_lanes)
