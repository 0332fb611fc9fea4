// finds: wrong
// Uses a block's sum in all threads: it is thread 0's alone.
#include <cub/cub.cuh>

#include "../kernels/case.h"

__global__ void add_kernel(const float* x, float* out, int n) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ Reduce::TempStorage storage;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  float zero = Reduce(storage).Sum(0.0f);
  if (i < n) out[i] = 2.0f * x[i] + zero;
}
extern "C" void run(const float* x, float* out, int n) { add_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
