// A load and a store that should be one atomic update: no data race, but updates of others between them are lost.
#include "case.h"

KERNEL(volatile_increment) {
  volatile int* count = scratch;
  if (fixed)
    atomicAdd(scratch, 1);
  else
    *count = *count + 1;  // @volatile_increment
}
PLANT(volatile_increment)

KERNEL(load_then_exchange) {
  if (fixed) {
    atomicAdd(&scratch[threadIdx.x % 4], 2);
  } else {
    int before = *static_cast<volatile int*>(&scratch[threadIdx.x % 4]);
    atomicExch(&scratch[threadIdx.x % 4], before + 2);  // @load_then_exchange
  }
}
PLANT(load_then_exchange)

KERNEL(volatile_maximum) {
  volatile int* largest = scratch;
  int value = blockIdx.x * 64 + threadIdx.x + 1;
  if (fixed)
    atomicMax(scratch, value);
  else if (*largest < value)
    *largest = value;  // @volatile_maximum
}
PLANT(volatile_maximum)

KERNEL(zero_add_then_exchange) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  if (fixed) {
    atomicAdd(&sum, x[threadIdx.x]);
  } else {
    float before = atomicAdd(&sum, 0.0f);
    atomicExch(&sum, before + x[threadIdx.x]);  // @zero_add_then_exchange
  }
}
PLANT(zero_add_then_exchange)
