// The honest twin of stack_overflow.cu: must pass.
#include "../kernels/case.h"

__device__ float deeper(const float* x, int i, int n) {
  volatile float held[256];
  held[i % 256] = x[i];
  if (n <= 0) return held[i % 256];
  return deeper(x, i, n - 3) + 0.0f * held[i % 256];
}
__global__ void deep_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * deeper(x, i, 3);
}
extern "C" void run(const float* x, float* out, int n) { deep_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
