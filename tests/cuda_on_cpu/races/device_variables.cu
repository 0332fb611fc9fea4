// Variables at file scope.
#include "case.h"

__device__ int counter;
__device__ float partial[64];
__device__ float total;

KERNEL(plain_counter) {
  if (fixed)
    atomicAdd(&counter, 1);
  else
    counter = counter + 1;  // @plain_counter
}
PLANT(plain_counter)

// Scratch memory that all blocks use as if it were their own.
KERNEL(shared_scratch) {
  int t = threadIdx.x;
  if (fixed && blockIdx.x > 0) return;
  partial[t] = x[blockIdx.x * 64 + t];  // @shared_scratch
  __syncthreads();
  out[blockIdx.x * 64 + t] = partial[63 - t];  // @shared_scratch
}
PLANT(shared_scratch)

KERNEL(total_of_blocks) {
  if (threadIdx.x != 0) return;
  if (fixed)
    atomicAdd(&total, x[blockIdx.x]);
  else
    total += x[blockIdx.x];  // @total_of_blocks
}
PLANT(total_of_blocks)
