// finds: schedule (n > 64)
// A block reads what the block before it is supposed to have written.
#include "../kernels/case.h"

__global__ void chain_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = 2.0f * x[i] + (blockIdx.x > 0 ? 1e-3f * out[i - 64] : 0.0f);
}
extern "C" void run(const float* x, float* out, int n) { chain_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
