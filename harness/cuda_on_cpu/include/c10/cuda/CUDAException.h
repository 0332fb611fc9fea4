// Checks of the runtime's return codes, thrown as torch's own errors.
#pragma once

#include <c10/util/Exception.h>

#include "cuda_on_cpu/runtime_api.h"

#define C10_CUDA_CHECK(EXPRESSION)                                                       \
  do {                                                                                   \
    const cudaError_t cuda_on_cpu_error = (EXPRESSION);                                  \
    TORCH_CHECK(cuda_on_cpu_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(cuda_on_cpu_error)); \
  } while (0)
#define C10_CUDA_CHECK_WARN(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define C10_CUDA_ERROR_HANDLED(EXPRESSION) (EXPRESSION)
#define C10_CUDA_IGNORE_ERROR(EXPRESSION) (void)(EXPRESSION)
#define C10_CUDA_CLEAR_ERROR() (void)cudaGetLastError()
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
