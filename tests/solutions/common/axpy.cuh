// What solutions share: a kernel, and its launch.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 128;

__global__ void axpy_kernel(float factor, const float* x, const float* y, float* out, int count) {
  __shared__ float staged[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  staged[threadIdx.x] = i < count ? factor * x[i] : 0.0f;
  __syncthreads();
  if (i < count) {
    out[i] = staged[threadIdx.x] + y[i];
  }
}

inline void launch_axpy(float factor, const float* x, const float* y, float* out, int count) {
  axpy_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      factor, x, y, out, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
