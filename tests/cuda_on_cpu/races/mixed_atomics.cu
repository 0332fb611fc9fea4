// Atomics on one side only.
#include "case.h"

KERNEL(plain_counter_read) {
  __shared__ int count;
  int t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  if (x[t] > 0.0f) atomicAdd(&count, 1);  // @plain_counter_read
  if (fixed) __syncthreads();
  if (t == 40) out[blockIdx.x] = count;  // @plain_counter_read
}
PLANT(plain_counter_read)

KERNEL(unordered_zero) {
  __shared__ int count;
  int t = threadIdx.x;
  if (t == 0) count = 0;  // @unordered_zero
  if (fixed) __syncthreads();
  atomicAdd(&count, 1);  // @unordered_zero
  __syncthreads();
  if (t == 0) out[blockIdx.x] = count;
}
PLANT(unordered_zero)

KERNEL(maximum_read) {
  __shared__ int largest;
  int t = threadIdx.x;
  if (t == 0) largest = 0;
  __syncthreads();
  atomicMax(&largest, t * 13 % 64);  // @maximum_read
  if (fixed) __syncthreads();
  out[blockIdx.x * 64 + t] = largest;  // @maximum_read
}
PLANT(maximum_read)

KERNEL(plain_reset) {
  int t = threadIdx.x;
  atomicAdd(&scratch[blockIdx.x], 1);  // @plain_reset
  if (fixed) __syncthreads();
  if (t == 63) scratch[blockIdx.x] = 0;  // @plain_reset
}
PLANT(plain_reset)

// The position comes from a plain read, the count from an atomic.
KERNEL(worklist) {
  int i = blockIdx.x * 64 + threadIdx.x, place;
  if (fixed) {
    place = atomicAdd(scratch, 1);
  } else {
    place = scratch[0];  // @worklist
    atomicAdd(scratch, 1);  // @worklist
  }
  scratch[1 + place] = i;  // @worklist
}
PLANT(worklist)
