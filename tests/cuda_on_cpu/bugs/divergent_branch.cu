// finds: error barrier divergence
// Half of the block waits at a barrier that the others never reach: they wait at another.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t < 40) {
    held[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
  }
  if (t >= 40) held[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = 2.0f * held[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
