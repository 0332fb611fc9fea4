// The honest twin of uninitialised_sum.cu: must pass.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  held[t] = 0.0f;
  if (i < n) held[t] += 2.0f * x[i];
  __syncthreads();
  if (i < n) out[i] = held[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
