// CUDA's keywords, and the macros that say which compiler this is.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __inline_hint__
// For functions of these headers that access a kernel's memory: their accesses have the caller's line.
#define CUDA_ON_CPU_INLINE inline __attribute__((always_inline))
// For those that keep their own state in it: their accesses do not count.
#define CUDA_ON_CPU_UNSEEN inline __attribute__((no_sanitize("thread")))
#define __nv_pure__

// What the source's __CUDA_ARCH__ and __CUDACC__ are translated to: it is compiled once, as device code of this
// generation. The original names would change the meaning of torch's own headers.
#define CUDA_ON_CPU_CUDA_ARCH 900
#define CUDA_ON_CPU_CUDACC 1

#define CUDA_VERSION 13000
#define CUDART_VERSION 13000
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_RUNTIME_H__
