// finds: error barrier divergence
// A shuffle of the full warp in a branch that only half of it takes, the rest waits at a barrier.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  float value = i < n ? x[i] : 0.0f;
  held[t] = value;
  if (t % 32 < 16) value = __shfl_xor_sync(0xffffffffu, value, 1);
  __syncthreads();
  if (i < n) out[i] = 2.0f * held[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
