// `__ldg` and `ld.global.nc` of what the launch writes: barriers do not order them, because their cache is not coherent.
#include "case.h"

KERNEL(through_memory) {
  int t = threadIdx.x, base = blockIdx.x * 64;
  out[base + t] = x[base + t] * 2.0f;  // @through_memory
  __syncthreads();
  float other = fixed ? out[base + 63 - t] : __ldg(&out[base + 63 - t]);  // @through_memory
  scratch[base + t] = other > 3.0f;
}
PLANT(through_memory)

KERNEL(in_ptx) {
  int t = threadIdx.x, base = blockIdx.x * 64;
  out[base + t] = x[base + t] * 2.0f;  // @in_ptx
  __syncthreads();
  float other;
  if (fixed)
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(other) : "l"(&out[base + 63 - t]) : "memory");
  else
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(other) : "l"(&out[base + 63 - t]) : "memory");  // @in_ptx
  scratch[base + t] = other > 3.0f;
}
PLANT(in_ptx)

// The counter is read before the launch's last block changes it, and by the block itself.
KERNEL(counter) {
  if (threadIdx.x != 0) return;
  atomicAdd(&scratch[blockIdx.x], 1);  // @counter
  out[blockIdx.x] = fixed ? atomicAdd(&scratch[blockIdx.x], 0) : __ldg(&scratch[blockIdx.x]);  // @counter
}
PLANT(counter)
