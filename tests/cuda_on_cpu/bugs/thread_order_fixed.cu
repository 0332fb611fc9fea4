// The honest twin of thread_order.cu: must pass.
#include "../kernels/case.h"

__global__ void shift_kernel(const float* x, float* out, int n) {
  int i = threadIdx.x;
  __shared__ float held[1025];
  if (i == 0) held[0] = 0.0f;
  held[i + 1] = 0.0f;
  __syncthreads();
  held[i + 1] = i < n ? x[i] : 0.0f;
  __syncthreads();
  float below = held[i];
  __syncthreads();
  if (i < n) out[i] = 2.0f * x[i] + 0.5f * below - 0.5f * (i > 0 ? x[i - 1] : 0.0f);
}
extern "C" void run(const float* x, float* out, int n) {
  shift_kernel<<<1, 1024>>>(x, out, n);
}
