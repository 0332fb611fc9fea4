// finds: wrong (n > 64)
// The tile is overwritten while other threads still read it.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float held[64];
  for (int start = 0; start < n; start += 64) {
    int i = start + threadIdx.x, mirrored = start + 63 - threadIdx.x;
    held[63 - threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (mirrored < n) out[mirrored] = 2.0f * held[threadIdx.x];
  }
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<1, 64>>>(x, out, n); }
