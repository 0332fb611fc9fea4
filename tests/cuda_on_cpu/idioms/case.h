// Honest kernels in idioms that popular code uses. Nothing may be reported about them.
#pragma once

#include "../kernels/case.h"

#define KERNEL(NAME) __global__ void NAME##_kernel(const float* x, float* out, int* scratch)

// `x` and `out` have 1024 elements; `scratch` holds 1024 zeros.
#define HONEST_LAUNCHED(LAUNCH, NAME, GRID, BLOCK)                    \
  extern "C" void NAME(const float* x, float* out, int* scratch) {    \
    void* arguments[] = {&x, &out, &scratch};                         \
    LAUNCH(NAME##_kernel, dim3(GRID), dim3(BLOCK), arguments, 0);      \
  }
#define HONEST(NAME, GRID, BLOCK) HONEST_LAUNCHED(cudaLaunchKernel, NAME, GRID, BLOCK)
#define HONEST_COOPERATIVE(NAME, GRID, BLOCK) HONEST_LAUNCHED(cudaLaunchCooperativeKernel, NAME, GRID, BLOCK)
#define HONEST_HOST(NAME) extern "C" void NAME(const float* x, float* out, int* scratch)
