// finds: wrong or out of bounds
// Reads one element past the end of its input, which the last result depends on.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + x[i] + 0.0f * x[i + 1];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 64) / 64, 64>>>(x, out, n); }
