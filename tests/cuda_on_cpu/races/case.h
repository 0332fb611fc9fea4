// Planted races. Each kernel is a template: with `fixed` false it has the bug, with true it is the honest twin. The lines
// of the accesses that race have the comment `// @name`.
#pragma once

#include "../kernels/case.h"

#define KERNEL(NAME)    \
  template <bool fixed> \
  __global__ void NAME##_kernel(const float* x, float* out, int* scratch)

// Launchers NAME and NAME_fixed. `x` and `out` have 1024 elements; `scratch` holds 1024 zeros.
#define PLANT_LAUNCHED(LAUNCH, NAME, GRID, BLOCK, SHARED)                    \
  extern "C" void NAME(const float* x, float* out, int* scratch) {           \
    void* arguments[] = {&x, &out, &scratch};                                \
    LAUNCH(NAME##_kernel<false>, dim3(GRID), dim3(BLOCK), arguments, SHARED); \
  }                                                                          \
  extern "C" void NAME##_fixed(const float* x, float* out, int* scratch) {   \
    void* arguments[] = {&x, &out, &scratch};                                \
    LAUNCH(NAME##_kernel<true>, dim3(GRID), dim3(BLOCK), arguments, SHARED); \
  }
#define PLANT_ON(NAME, GRID, BLOCK, SHARED) PLANT_LAUNCHED(cudaLaunchKernel, NAME, GRID, BLOCK, SHARED)
#define PLANT(NAME) PLANT_ON(NAME, 4, 64, 0)
#define PLANT_COOPERATIVE(NAME) PLANT_LAUNCHED(cudaLaunchCooperativeKernel, NAME, 4, 64, 0)
