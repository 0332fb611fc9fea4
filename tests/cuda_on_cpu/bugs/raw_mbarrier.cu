// finds: error the mbarrier was not initialised
// Threads arrive at an mbarrier before the first one has initialised it.
#include "../kernels/case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  __shared__ alignas(8) unsigned long long barrier;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  unsigned at = shared_at(&barrier);
  if (t == 63) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" :: "r"(at) : "memory");
  held[t] = i < n ? 2.0f * x[i] : 0.0f;
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at) : "memory");
  float value = held[t ^ 1];
  __syncthreads();
  held[t ^ 1] = value;
  __syncthreads();
  if (i < n) out[i] = held[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
