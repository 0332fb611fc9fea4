// The grid-stride loop of torch's own kernels.
#pragma once

#include <cstdint>
#include <limits>

#include <c10/util/Exception.h>

#include "cuda_on_cpu/runtime.h"

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                                             \
  int64_t cuda_on_cpu_index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;                  \
  for (index_type i = cuda_on_cpu_index; cuda_on_cpu_index < (n);                                           \
       cuda_on_cpu_index += static_cast<int64_t>(blockDim.x) * gridDim.x, i = cuda_on_cpu_index)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace at::cuda::detail {
constexpr int CUDA_NUM_THREADS = 1024;
inline int GET_BLOCKS(int64_t n, int64_t threads = CUDA_NUM_THREADS) {
  TORCH_INTERNAL_ASSERT(n > 0, "CUDA kernel launch blocks must be positive, but got N=", n);
  int64_t blocks = (n - 1) / threads + 1;
  constexpr int64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(blocks < most ? blocks : most);
}
}  // namespace at::cuda::detail
