// Barriers that not all threads reach.
#include "case.h"

KERNEL(in_a_branch) {
  if (fixed || threadIdx.x < 32) __syncthreads();  // @in_a_branch
  __syncthreads();  // @in_a_branch
  out[threadIdx.x] = x[threadIdx.x] * (blockIdx.x == 0);
}
PLANT_ON(in_a_branch, 1, 64, 0)

KERNEL(uneven_loop) {
  for (int k = 0; k < (fixed ? 3 : 2 + (threadIdx.x & 1)); ++k) __syncthreads();  // @uneven_loop
  __syncthreads();  // @uneven_loop
}
PLANT(uneven_loop)

KERNEL(two_lines) {
  if (fixed) {
    __syncthreads();
  } else if (threadIdx.x % 2) {
    __syncthreads();  // @two_lines
  } else {
    __syncthreads();  // @two_lines
  }
}
PLANT(two_lines)

KERNEL(lane_not_named) {
  __syncwarp(fixed ? 0xffffffffu : 0x0000ffffu);  // @lane_not_named
}
PLANT(lane_not_named)

KERNEL(masks_differ) {
  __syncwarp(fixed || threadIdx.x % 2 ? 0xffffffffu : 0x55555555u);  // @masks_differ
  __syncthreads();  // @masks_differ
}
PLANT(masks_differ)
