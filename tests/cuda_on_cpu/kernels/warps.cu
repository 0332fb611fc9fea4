// Shuffles, votes, reductions and matches of a warp.
#include "case.h"

#define FULL 0xffffffffu

__global__ void shfl_kernel(const int* x, int* out) {
  int lane = threadIdx.x % 32, value = x[threadIdx.x];
  out[threadIdx.x] = __shfl_sync(FULL, value, (lane + 5) % 32);
}
extern "C" void shfl(const int* x, int* out) { shfl_kernel<<<1, 64>>>(x, out); }

__global__ void shfl_up_kernel(const float* x, float* out) { out[threadIdx.x] = __shfl_up_sync(FULL, x[threadIdx.x], 3); }
extern "C" void shfl_up(const float* x, float* out) { shfl_up_kernel<<<1, 64>>>(x, out); }

__global__ void shfl_down_kernel(const float* x, float* out) { out[threadIdx.x] = __shfl_down_sync(FULL, x[threadIdx.x], 7); }
extern "C" void shfl_down(const float* x, float* out) { shfl_down_kernel<<<1, 64>>>(x, out); }

__global__ void shfl_xor_kernel(const double* x, double* out) { out[threadIdx.x] = __shfl_xor_sync(FULL, x[threadIdx.x], 13); }
extern "C" void shfl_xor(const double* x, double* out) { shfl_xor_kernel<<<1, 64>>>(x, out); }

__global__ void width_kernel(const int* x, int* out) {
  int value = x[threadIdx.x];
  out[threadIdx.x] = __shfl_sync(FULL, value, 2, 8);
  out[64 + threadIdx.x] = __shfl_down_sync(FULL, value, 3, 8);
  out[128 + threadIdx.x] = __shfl_up_sync(FULL, value, 1, 4);
  out[192 + threadIdx.x] = __shfl_xor_sync(FULL, value, 5, 16);
}
extern "C" void shfl_width(const int* x, int* out) { width_kernel<<<1, 64>>>(x, out); }

__global__ void long_kernel(const long long* x, long long* out) {
  out[threadIdx.x] = __shfl_sync(FULL, x[threadIdx.x], 31 - threadIdx.x % 32);
}
extern "C" void shfl_64_bits(const long long* x, long long* out) { long_kernel<<<1, 32>>>(x, out); }

__inline__ __device__ float warp_sum(float value) {
#pragma unroll
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(FULL, value, offset);
  return value;
}
__global__ void warp_sum_kernel(const float* x, float* out, int rows, int columns) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32) sum += x[row * columns + c];
  sum = warp_sum(sum);
  if (lane == 0) out[row] = sum;
}
extern "C" void warp_per_row(const float* x, float* out, int rows, int columns) {
  warp_sum_kernel<<<(rows + 3) / 4, 128>>>(x, out, rows, columns);
}

__global__ void votes_kernel(const int* x, unsigned* out) {
  int value = x[threadIdx.x];
  unsigned ballot = __ballot_sync(FULL, value > 50);
  int any = __any_sync(FULL, value == 99), all = __all_sync(FULL, value >= 0);
  if (threadIdx.x % 32 == 0) {
    out[3 * (threadIdx.x / 32)] = ballot;
    out[3 * (threadIdx.x / 32) + 1] = any != 0;
    out[3 * (threadIdx.x / 32) + 2] = all != 0;
  }
}
extern "C" void votes(const int* x, unsigned* out) { votes_kernel<<<1, 96>>>(x, out); }

__global__ void partial_kernel(const int* x, int* out) {
  int lane = threadIdx.x;
  if (lane < 12) {
    int sum = x[lane];
    for (int offset = 1; offset < 12; ++offset) sum += __shfl_sync(0xfff, x[lane], (lane + offset) % 12);
    out[lane] = sum;
  } else {
    out[lane] = -1;
  }
}
extern "C" void partial_mask(const int* x, int* out) { partial_kernel<<<1, 32>>>(x, out); }

__global__ void two_halves_kernel(const int* x, int* out) {
  int value = x[threadIdx.x];
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_sync(0x0000ffff, value, 15);
  else
    out[threadIdx.x] = __shfl_sync(0xffff0000, value, 16);
}
extern "C" void two_halves(const int* x, int* out) { two_halves_kernel<<<1, 32>>>(x, out); }

__global__ void active_kernel(unsigned* out) {
  if (threadIdx.x % 3 == 0) {
    unsigned mask = __activemask();
    out[threadIdx.x] = mask;
  } else {
    out[threadIdx.x] = 0;
  }
}
extern "C" void active_mask(unsigned* out) { active_kernel<<<1, 32>>>(out); }

__global__ void reduce_kernel(const int* x, const unsigned* y, int* out, unsigned* bits) {
  int value = x[threadIdx.x];
  unsigned word = y[threadIdx.x];
  int sum = __reduce_add_sync(FULL, value), low = __reduce_min_sync(FULL, value), high = __reduce_max_sync(FULL, value);
  unsigned all = __reduce_and_sync(FULL, word), any = __reduce_or_sync(FULL, word), odd = __reduce_xor_sync(FULL, word);
  unsigned most = __reduce_max_sync(FULL, word);
  if (threadIdx.x == 0) {
    out[0] = sum, out[1] = low, out[2] = high;
    bits[0] = all, bits[1] = any, bits[2] = odd, bits[3] = most;
  }
}
extern "C" void reduce(const int* x, const unsigned* y, int* out, unsigned* bits) { reduce_kernel<<<1, 32>>>(x, y, out, bits); }

__global__ void match_kernel(const int* x, unsigned* out, int* equal) {
  out[threadIdx.x] = __match_any_sync(FULL, x[threadIdx.x]);
  int same = -1;
  __match_all_sync(FULL, x[threadIdx.x] / 1000, &same);
  equal[threadIdx.x] = same != 0;
}
extern "C" void match(const int* x, unsigned* out, int* equal) { match_kernel<<<1, 32>>>(x, out, equal); }

__global__ void lane_scan_kernel(const int* x, int* out) {
  int lane = threadIdx.x % 32, value = x[threadIdx.x];
  for (int offset = 1; offset < 32; offset *= 2) {
    int below = __shfl_up_sync(FULL, value, offset);
    if (lane >= offset) value += below;
  }
  out[threadIdx.x] = value;
}
extern "C" void lane_scan(const int* x, int* out) { lane_scan_kernel<<<2, 96>>>(x, out); }

__global__ void softmax_kernel(const float* x, float* out, int columns) {
  const float* row = x + blockIdx.x * columns;
  float best = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += 32) best = fmaxf(best, row[c]);
  for (int offset = 16; offset; offset >>= 1) best = fmaxf(best, __shfl_xor_sync(FULL, best, offset));
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 32) sum += __expf(row[c] - best);
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(FULL, sum, offset);
  for (int c = threadIdx.x; c < columns; c += 32) out[blockIdx.x * columns + c] = __expf(row[c] - best) / sum;
}
extern "C" void softmax(const float* x, float* out, int rows, int columns) { softmax_kernel<<<rows, 32>>>(x, out, columns); }

__global__ void exited_kernel(const int* x, int* out, int n) {
  if (threadIdx.x >= n) return;
  unsigned mask = (1u << n) - 1;
  out[threadIdx.x] = __reduce_add_sync(mask, x[threadIdx.x]);
}
extern "C" void lanes_that_left(const int* x, int* out, int n) { exited_kernel<<<1, 32>>>(x, out, n); }

__global__ void compact_kernel(const int* x, int* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool keep = i < n && x[i] > 0;
  unsigned kept = __ballot_sync(FULL, keep);
  int lane = threadIdx.x % 32, base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(kept));
  base = __shfl_sync(FULL, base, 0);
  if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = x[i];
}
extern "C" void compact(const int* x, int* out, int* count, int n) { compact_kernel<<<1, 32>>>(x, out, count, n); }
