// Missing __syncthreads().
#include "case.h"

KERNEL(neighbour) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  held[t] = x[i];  // @neighbour
  if (fixed) __syncthreads();
  out[i] = held[(t + 32) % 64];  // @neighbour
}
PLANT(neighbour)

KERNEL(tree) {
  __shared__ float sums[64];
  int t = threadIdx.x;
  sums[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int stride = 32; stride > 0; stride /= 2) {
    if (t < stride) sums[t] += sums[t + stride];  // @tree
    if (fixed) __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
PLANT(tree)

// The next tile is written while other warps still read the last one.
KERNEL(reuse) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int step = 0; step < 4; ++step) {
    tile[t] = x[step * 64 + t];  // @reuse
    __syncthreads();
    for (int k = 0; k < 64; ++k) sum += tile[k];  // @reuse
    if (fixed) __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum;
}
PLANT(reuse)

KERNEL(broadcast) {
  __shared__ float first;
  int t = threadIdx.x;
  if (t == 0) first = x[blockIdx.x];  // @broadcast
  if (fixed) __syncthreads();
  out[blockIdx.x * 64 + t] = first;  // @broadcast
}
PLANT(broadcast)

// Two buffers, but only one barrier in two steps.
KERNEL(double_buffer) {
  __shared__ float tile[2][64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int step = 0; step < 6; ++step) {
    tile[step % 2][t] = x[step * 64 + t];  // @double_buffer
    if (fixed || step % 2 == 0) __syncthreads();
    sum += tile[step % 2][63 - t];  // @double_buffer
  }
  out[blockIdx.x * 64 + t] = sum;
}
PLANT(double_buffer)

// A barrier of the block is reached by all, but stands before the write instead of after it.
KERNEL(too_early) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (!fixed) __syncthreads();
  tile[t] = x[t];  // @too_early
  if (fixed) __syncthreads();
  out[blockIdx.x * 64 + t] = tile[63 - t];  // @too_early
}
PLANT(too_early)
