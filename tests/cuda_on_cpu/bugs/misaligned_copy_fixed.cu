// Copies 4 bytes to an address that is a multiple of 4.
#include "../kernels/case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ alignas(16) float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(shared_at(held + t)), "l"(x + i) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i] = 2.0f * held[t];
  }
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
