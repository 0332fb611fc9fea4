// The honest twin of wrong_mask.cu: must pass.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  held[t] = i < n ? x[i] : 0.0f;
  float value = __shfl_sync(0xffffffffu, held[t], t % 32);
  if (i < n) out[i] = 2.0f * value;
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
