// Atomic operations, shared and global.
#include "case.h"

__global__ void add_kernel(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  atomicAdd(i, -2);
  atomicAdd(u, 3u);
  atomicAdd(l, 5ull);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
}
extern "C" void add(int* i, unsigned* u, unsigned long long* l, float* f, double* d) { add_kernel<<<37, 96>>>(i, u, l, f, d); }

__global__ void histogram_kernel(const int* x, int* bins, int n) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(bins + threadIdx.x, local[threadIdx.x]);
}
extern "C" void histogram(const int* x, int* bins, int n) { histogram_kernel<<<8, 128>>>(x, bins, n); }

__global__ void extremes_kernel(const int* x, int* out, unsigned* bits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicMax(out, x[i]);
  atomicMin(out + 1, x[i]);
  atomicMax(bits, static_cast<unsigned>(x[i]));
  atomicMin(bits + 1, static_cast<unsigned>(x[i]));
}
extern "C" void extremes(const int* x, int* out, unsigned* bits, int n) { extremes_kernel<<<(n + 63) / 64, 64>>>(x, out, bits, n); }

__global__ void bitwise_kernel(unsigned* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicOr(out, 1u << (i % 32));
  atomicAnd(out + 1, ~(1u << (i % 16)));
  atomicXor(out + 2, static_cast<unsigned>(i));
}
extern "C" void bitwise(unsigned* out) { bitwise_kernel<<<3, 64>>>(out); }

__global__ void subtract_kernel(int* x, unsigned* y) {
  atomicSub(x, 3);
  atomicSub(y, 1u);
}
extern "C" void subtract(int* x, unsigned* y) { subtract_kernel<<<4, 50>>>(x, y); }

__global__ void exchange_kernel(int* x, int* out) { out[threadIdx.x] = atomicExch(x, threadIdx.x + 1); }
extern "C" void exchange(int* x, int* out) { exchange_kernel<<<1, 32>>>(x, out); }

__device__ float atomic_max_float(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (assumed != old);
  return __int_as_float(old);
}
__global__ void cas_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max_float(out, x[i]);
}
extern "C" void compare_and_swap(const float* x, float* out, int n) { cas_kernel<<<(n + 31) / 32, 32>>>(x, out, n); }

__global__ void wrap_kernel(unsigned* up, unsigned* down) {
  atomicInc(up, 9u);
  atomicDec(down, 9u);
}
extern "C" void wrapping(unsigned* up, unsigned* down) { wrap_kernel<<<1, 25>>>(up, down); }

__global__ void ticket_kernel(int* next, int* seen) { seen[atomicAdd(next, 1)] = 1; }
extern "C" void tickets(int* next, int* seen) { ticket_kernel<<<20, 50>>>(next, seen); }

__global__ void long_kernel(const long long* x, unsigned long long* sum, long long* most, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  atomicAdd(sum, static_cast<unsigned long long>(x[i]));
  atomicMax(most, x[i]);
}
extern "C" void long_long(const long long* x, unsigned long long* sum, long long* most, int n) { long_kernel<<<1, 64>>>(x, sum, most, n); }

__global__ void lock_kernel(int* lock, int* total) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *(volatile int*)total = *(volatile int*)total + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
extern "C" void spin_lock(int* lock, int* total) { lock_kernel<<<40, 32>>>(lock, total); }

__global__ void scoped_kernel(int* x) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd_block(&sum, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd_system(x, sum);
}
extern "C" void scoped(int* x) { scoped_kernel<<<6, 64>>>(x); }
