// The honest twin of overrun_read.cu: must pass.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + x[i] + 0.0f * x[i + 1 < n ? i + 1 : i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 64) / 64, 64>>>(x, out, n); }
