// finds: wrong
// A block has fewer threads than the collective is made for.
#include <cub/cub.cuh>

#include "../kernels/case.h"

__global__ void add_kernel(const float* x, float* out, int n) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ Reduce::TempStorage storage;
  __shared__ float shared;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float zero = Reduce(storage).Sum(0.0f);
  if (t == 0) shared = zero;
  __syncthreads();
  if (i < n) out[i] = 2.0f * x[i] + shared;
}
extern "C" void run(const float* x, float* out, int n) { add_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
