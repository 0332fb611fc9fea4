// Arrays in dynamic shared memory.
#include "case.h"

KERNEL(overlapping_arrays) {
  extern __shared__ float memory[];
  float* first = memory;
  float* second = memory + (fixed ? 64 : 60);
  int t = threadIdx.x;
  first[t] = x[t];  // @overlapping_arrays
  second[t] = x[t + 64];  // @overlapping_arrays
  __syncthreads();
  out[blockIdx.x * 64 + t] = first[t] + second[t];
}
PLANT_ON(overlapping_arrays, 4, 64, 512)

KERNEL(stage) {
  extern __shared__ float memory[];
  int t = threadIdx.x;
  memory[t] = x[t];  // @stage
  if (fixed) __syncthreads();
  memory[64 + t] = memory[(t + 1) % 64];  // @stage
  __syncthreads();
  out[blockIdx.x * 64 + t] = memory[64 + t];
}
PLANT_ON(stage, 4, 64, 512)

KERNEL(transposed) {
  extern __shared__ float memory[];
  int row = threadIdx.y, column = threadIdx.x;
  memory[row * 9 + column] = x[row * 8 + column];  // @transposed
  if (fixed) __syncthreads();
  out[row * 8 + column] = memory[column * 9 + row];  // @transposed
}
PLANT_ON(transposed, 1, dim3(8, 8), 512)

KERNEL(short_stride) {
  extern __shared__ int counts[];
  int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) counts[t * (fixed ? 4 : 3) + k] = t + k * k;  // @short_stride
  __syncthreads();
  out[blockIdx.x * 64 + t] = counts[t];
}
PLANT_ON(short_stride, 4, 64, 1024)
