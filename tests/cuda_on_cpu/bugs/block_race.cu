// finds: schedule (n > 64)
// Every block writes the same element: which one is last is open.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i - i % 64 < 64 || threadIdx.x ? i : 0] = 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
