// The honest twin of divergent_loop.cu: must pass.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  float sum = 0.0f;
  for (int k = 0; k < 2; ++k) {
    held[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
  }
  sum = held[t];
  __syncthreads();
  if (i < n) out[i] = 2.0f * sum;
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
