// Elements of global memory that one thread overwrites and another one reads.
#include "case.h"

KERNEL(shift) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float next = scratch[fixed ? i + 256 : i + 1];  // @shift
  scratch[i] = i + next;  // @shift
}
PLANT(shift)

KERNEL(block_edge) {
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  int left = t > 0 || !fixed ? scratch[i > 0 ? i - 1 : 0] : 0;  // @block_edge
  __syncthreads();
  scratch[i] = left + 1 + i;  // @block_edge
}
PLANT(block_edge)

KERNEL(reverse) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (fixed && i >= 128) return;
  int other = scratch[255 - i];  // @reverse
  scratch[255 - i] = scratch[i] + i;  // @reverse
  scratch[i] = other + 1;  // @reverse
}
PLANT(reverse)

KERNEL(prefix) {
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  for (int step = 1; step < 64; step *= 2) {
    int before = t >= step ? scratch[i - step] : 0;  // @prefix
    if (fixed) __syncthreads();
    scratch[i] += before + t;  // @prefix
    __syncthreads();
  }
}
PLANT(prefix)

// The result of one block is the input of the next, in one launch.
KERNEL(next_block) {
  int t = threadIdx.x, b = blockIdx.x;
  out[b * 64 + t] = (b > 0 && !fixed ? out[b * 64 - 64 + t] : 0.0f) + x[t];  // @next_block
}
PLANT(next_block)
