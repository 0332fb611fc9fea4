// Barriers: in loops and functions, with early returns, with reductions; fences.
#include "case.h"

__global__ void early_return_kernel(const float* x, float* out, int n) {
  __shared__ float held[128];
  if (threadIdx.x >= n) return;
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[n - 1 - threadIdx.x];
}
extern "C" void early_return(const float* x, float* out, int n) { early_return_kernel<<<1, 128>>>(x, out, n); }

__global__ void scan_kernel(int* x, int n) {
  __shared__ int held[256];
  held[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 0;
  __syncthreads();
  for (int offset = 1; offset < 256; offset *= 2) {
    int value = threadIdx.x >= offset ? held[threadIdx.x - offset] : 0;
    __syncthreads();
    held[threadIdx.x] += value;
    __syncthreads();
  }
  if (threadIdx.x < n) x[threadIdx.x] = held[threadIdx.x];
}
extern "C" void in_loop(int* x, int n) { scan_kernel<<<1, 256>>>(x, n); }

__device__ void meet() { __syncthreads(); }
__global__ void function_kernel(const int* x, int* out) {
  __shared__ int held[96];
  held[threadIdx.x] = x[threadIdx.x];
  meet();
  int value = held[(threadIdx.x + 37) % 96];
  meet();
  held[threadIdx.x] = value + 1;
  meet();
  out[threadIdx.x] = held[95 - threadIdx.x];
}
extern "C" void in_function(const int* x, int* out) { function_kernel<<<1, 96>>>(x, out); }

__global__ void count_kernel(const int* x, int* out, int n) {
  int even = threadIdx.x < n && x[threadIdx.x] % 2 == 0;
  int count = __syncthreads_count(even);
  int all = __syncthreads_and(threadIdx.x >= n || x[threadIdx.x] < 1000);
  int any = __syncthreads_or(threadIdx.x < n && x[threadIdx.x] == 77);
  if (threadIdx.x == 0) {
    out[0] = count;
    out[1] = all != 0;
    out[2] = any != 0;
  }
}
extern "C" void counting(const int* x, int* out, int n) { count_kernel<<<1, 192>>>(x, out, n); }

__global__ void uniform_branch_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  if (blockIdx.x % 2 == 0) {
    held[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = held[63 - threadIdx.x];
  } else {
    out[blockIdx.x * 64 + threadIdx.x] = 0.0f;
  }
}
extern "C" void uniform_branch(const float* x, float* out, int n) { uniform_branch_kernel<<<n / 64, 64>>>(x, out, n); }

__device__ unsigned finished = 0;
__global__ void last_block_kernel(const float* x, float* partial, float* out, int n) {
  __shared__ float held[128];
  __shared__ bool last;
  float sum = 0.0f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += x[i];
  held[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half; half /= 2) {
    if (threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = held[0];
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float total = 0.0f;
    for (int b = 0; b < gridDim.x; ++b) total += ((volatile float*)partial)[b];
    out[0] = total;
  }
}
extern "C" void last_block(const float* x, float* partial, float* out, int n) { last_block_kernel<<<7, 128>>>(x, partial, out, n); }

__global__ void sort_kernel(float* x, int n) {
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      int other = threadIdx.x ^ stride;
      if (other > threadIdx.x) {
        bool ascending = (threadIdx.x & size) == 0;
        if ((x[threadIdx.x] > x[other]) == ascending) {
          float held = x[threadIdx.x];
          x[threadIdx.x] = x[other];
          x[other] = held;
        }
      }
      __syncthreads();
    }
}
extern "C" void bitonic_sort(float* x, int n) { sort_kernel<<<1, n>>>(x, n); }

__global__ void odd_block_kernel(const int* x, int* out) {
  __shared__ int held[3][7][5];
  held[threadIdx.z][threadIdx.y][threadIdx.x] = x[(threadIdx.z * 7 + threadIdx.y) * 5 + threadIdx.x];
  __syncthreads();
  out[(threadIdx.z * 7 + threadIdx.y) * 5 + threadIdx.x] = held[2 - threadIdx.z][6 - threadIdx.y][4 - threadIdx.x];
}
extern "C" void odd_block(const int* x, int* out) { odd_block_kernel<<<1, dim3(5, 7, 3)>>>(x, out); }

__global__ void syncwarp_kernel(const int* x, int* out) {
  __shared__ int held[4][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  held[warp][lane] = x[threadIdx.x];
  __syncwarp();
  int value = held[warp][31 - lane];
  __syncwarp(0xffffffff);
  if (lane < 16) {
    held[warp][lane] = value;
    __syncwarp(0x0000ffff);
    value = held[warp][15 - lane];
  }
  out[threadIdx.x] = value;
}
extern "C" void warp_barrier(const int* x, int* out) { syncwarp_kernel<<<1, 128>>>(x, out); }
