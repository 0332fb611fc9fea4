// The honest twin of uninitialised_workspace.cu: must pass.
#include "../kernels/case.h"

__global__ void add_kernel(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) {
  float* sum = nullptr;
  cudaMalloc(&sum, n * sizeof(float));
  cudaMemset(sum, 0, n * sizeof(float));
  add_kernel<<<(n + 63) / 64, 64>>>(x, sum, n);
  cudaMemcpy(out, sum, n * sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(sum);
}
