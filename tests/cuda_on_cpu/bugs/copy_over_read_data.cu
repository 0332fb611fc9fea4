// finds: wrong
// Starts a copy into memory that other threads may still read.
#include "../kernels/case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ float stage[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  stage[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  float value = stage[t ^ 1];
  // The next data, which nothing uses here.
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\ncp.async.commit_group;"
               :: "r"(shared_at(stage + t)), "l"(out) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  stage[t ^ 1] = 2.0f * value;
  __syncthreads();
  if (i < n) out[i] = stage[t];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
