// finds: error out of bounds
// Writes through a null pointer.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float* target = n > 0 ? nullptr : out;
  if (i < n) target[i] = 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
