// finds: error out of bounds
// Writes one element past the end of its output: what it computes from the bytes past the end of its input.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 64) / 64, 64>>>(x, out, n); }
