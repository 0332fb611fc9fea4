// finds: error out of bounds
// Writes one element before the start of its output.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i - 1] = 2.0f * x[i > 0 ? i - 1 : 0];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 64) / 64, 64>>>(x, out, n); }
