// Missing __syncwarp().
#include <mma.h>

#include "case.h"

KERNEL(exchange) {
  __shared__ float held[64];
  int t = threadIdx.x;
  held[t] = x[t];  // @exchange
  if (fixed) __syncwarp();
  out[blockIdx.x * 64 + t] = held[t ^ 1];  // @exchange
}
PLANT(exchange)

KERNEL(warp_tree) {
  __shared__ float sums[64];
  int t = threadIdx.x, lane = t % 32;
  sums[t] = x[t];
  __syncwarp();
  for (int stride = 16; stride > 0; stride /= 2) {
    if (lane < stride) sums[t] += sums[t + stride];  // @warp_tree
    if (fixed) __syncwarp();
  }
  if (lane == 0) out[blockIdx.x * 2 + t / 32] = sums[t];
}
PLANT(warp_tree)

// A barrier of half a warp does not order the other half.
KERNEL(half_mask) {
  __shared__ float held[64];
  int t = threadIdx.x, lane = t % 32;
  held[t] = x[t];  // @half_mask
  if (fixed)
    __syncwarp();
  else
    __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
  out[blockIdx.x * 64 + t] = held[t ^ 16];  // @half_mask
}
PLANT(half_mask)

// A shuffle does not order memory accesses.
KERNEL(shuffle_only) {
  __shared__ float held[64];
  int t = threadIdx.x;
  held[t] = x[t];  // @shuffle_only
  float other = __shfl_xor_sync(0xffffffffu, x[t], 1);
  if (fixed) __syncwarp();
  out[blockIdx.x * 64 + t] = other + held[t ^ 2];  // @shuffle_only
}
PLANT(shuffle_only)

using namespace nvcuda;

KERNEL(stored_fragment) {
  __shared__ __align__(32) float tile[2][256];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, x[0]);
  wmma::store_matrix_sync(tile[warp], sum, 16, wmma::mem_row_major);  // @stored_fragment
  if (fixed) __syncwarp();
  for (int i = lane; i < 256; i += 32) out[warp * 256 + i] = tile[warp][i];  // @stored_fragment
}
PLANT_ON(stored_fragment, 1, 64, 0)

KERNEL(loaded_fragment) {
  __shared__ __align__(32) float tile[2][256];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = lane; i < 256; i += 32) tile[warp][i] = x[i];  // @loaded_fragment
  if (fixed) __syncwarp();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(sum, tile[warp], 16, wmma::mem_row_major);  // @loaded_fragment
  out[threadIdx.x] = sum.x[0];
}
PLANT_ON(loaded_fragment, 1, 64, 0)
