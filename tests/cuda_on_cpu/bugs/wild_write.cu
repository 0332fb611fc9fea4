// finds: error out of bounds
// Writes far outside of everything.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
  if (i == n - 1) out[1ll << 40] = 1.0f;
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
