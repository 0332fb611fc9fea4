// Several threads write one element of global memory.
#include "case.h"

KERNEL(last_writer) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[fixed ? i : i / 2] = x[i];  // @last_writer
}
PLANT(last_writer)

KERNEL(block_writer) {
  if (threadIdx.x == 0) out[fixed ? blockIdx.x : 0] = x[blockIdx.x];  // @block_writer
}
PLANT(block_writer)

KERNEL(increment) {
  if (fixed)
    atomicAdd(scratch, 1);
  else
    scratch[0] += 1;  // @increment
}
PLANT(increment)

KERNEL(histogram) {
  int i = blockIdx.x * 64 + threadIdx.x, bin = i * 7 % 16;
  if (fixed)
    atomicAdd(&scratch[bin], 1);
  else
    scratch[bin]++;  // @histogram
}
PLANT(histogram)

KERNEL(maximum) {
  int i = blockIdx.x * 64 + threadIdx.x, value = i * 31 % 257;
  if (fixed)
    atomicMax(scratch, value);
  else if (scratch[0] < value)  // @maximum
    scratch[0] = value;  // @maximum
}
PLANT(maximum)

// Rows of one block and columns of another cross.
KERNEL(overlapping_tiles) {
  int t = threadIdx.x, width = fixed ? 64 : 63;
  out[blockIdx.x * width + t] = x[blockIdx.x * 64 + t];  // @overlapping_tiles
}
PLANT(overlapping_tiles)
