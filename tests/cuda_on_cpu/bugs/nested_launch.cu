// finds: error unsupported on the CPU (run with a CUDA device): dynamic parallelism
// Launches a kernel from a kernel, through a functor, which the translation does not follow.
#include "../kernels/case.h"

__global__ void one_kernel(const float* x, float* out, int i) { out[i] = 2.0f * x[i]; }
struct Launch {
  __host__ __device__ void operator()(const float* x, float* out, int i) const { one_kernel<<<1, 1>>>(x, out, i); }
};
__global__ void double_kernel(const float* x, float* out, int n, Launch launch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) launch(x, out, i);
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n, Launch()); }
