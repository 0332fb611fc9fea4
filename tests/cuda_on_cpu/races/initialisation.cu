// What nothing wrote is read.
#include "case.h"

KERNEL(unwritten_element) {
  __shared__ float held[64];
  int t = threadIdx.x;
  if (fixed || t != 9) held[t] = x[t];
  __syncthreads();
  out[blockIdx.x * 64 + t] = held[63 - t];  // @unwritten_element
}
PLANT(unwritten_element)

KERNEL(unwritten_sum) {
  __shared__ float sum;
  if (fixed && threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  atomicAdd(&sum, x[threadIdx.x]);  // @unwritten_sum
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
PLANT(unwritten_sum)

// fmaxf drops a NaN, so the result does not show what was read.
KERNEL(hidden_by_max) {
  __shared__ float held[64];
  int t = threadIdx.x;
  if (fixed || t < 60) held[t] = x[t];
  __syncthreads();
  out[blockIdx.x * 64 + t] = fmaxf(held[t], held[t ^ 3]);  // @hidden_by_max
}
PLANT(hidden_by_max)

KERNEL(unwritten_workspace) {
  int i = blockIdx.x * 64 + threadIdx.x;
  scratch[i] += i;  // @unwritten_workspace
}
template <bool fixed>
void launch_workspace() {
  int* workspace = nullptr;
  cudaMalloc(&workspace, 1024);
  if (fixed) cudaMemset(workspace, 0, 1024);
  unwritten_workspace_kernel<fixed><<<4, 64>>>(nullptr, nullptr, workspace);
  cudaFree(workspace);
}
extern "C" void unwritten_workspace(const float*, float*, int*) { launch_workspace<false>(); }
extern "C" void unwritten_workspace_fixed(const float*, float*, int*) { launch_workspace<true>(); }

KERNEL(unwritten_halo) {
  __shared__ float tile[66];
  int t = threadIdx.x;
  tile[t + 1] = x[t];
  if (t == 0) tile[0] = 0.0f;
  if (fixed && t == 63) tile[65] = 0.0f;
  __syncthreads();
  out[blockIdx.x * 64 + t] = tile[t] + tile[t + 1] + tile[t + 2];  // @unwritten_halo
}
PLANT(unwritten_halo)
