// The honest twin of underrun_write.cu: must pass.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i <= n) out[i - 1] = 2.0f * x[i - 1];
  if (i == n - 1) out[i] = 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 64) / 64, 64>>>(x, out, n); }
