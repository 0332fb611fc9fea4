// finds: error out of bounds
// Writes one element past a shared array.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  held[t] = i < n ? x[i] : 0.0f;
  if (t == 63) held[t + 1] = 0.0f;
  __syncthreads();
  if (i < n) out[i] = 2.0f * held[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
