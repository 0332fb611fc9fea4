// Loads and stores with cache hints: the hint is dropped.
#pragma once

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/vector_types.h"

// The types that CUDA has these functions for.
#define CUDA_ON_CPU_FOR_EACH_LOADED(DO)                                                                    \
  DO(char) DO(signed char) DO(unsigned char) DO(short) DO(unsigned short) DO(int) DO(unsigned) DO(long)    \
  DO(unsigned long) DO(long long) DO(unsigned long long) DO(float) DO(double)                              \
  DO(char2) DO(uchar2) DO(short2) DO(ushort2) DO(int2) DO(uint2) DO(longlong2) DO(ulonglong2) DO(float2) DO(double2) \
  DO(char4) DO(uchar4) DO(short4) DO(ushort4) DO(int4) DO(uint4) DO(float4)                                \
  DO(__half) DO(__half2) DO(__nv_bfloat16) DO(__nv_bfloat162)

#define CUDA_ON_CPU_ACCESSES(T)                                \
  CUDA_ON_CPU_INLINE T __ldg(const T* address) {                                \
    cuda_on_cpu::race_read_only(address, sizeof(T));                            \
    return *address;                                                            \
  }                                                                             \
  CUDA_ON_CPU_INLINE T __ldca(const T* address) { return *address; }       \
  CUDA_ON_CPU_INLINE T __ldcg(const T* address) { return *address; }       \
  CUDA_ON_CPU_INLINE T __ldcs(const T* address) { return *address; }       \
  CUDA_ON_CPU_INLINE T __ldcv(const T* address) { return *address; }       \
  CUDA_ON_CPU_INLINE T __ldlu(const T* address) { return *address; }       \
  CUDA_ON_CPU_INLINE void __stwb(T* address, T value) { *address = value; } \
  CUDA_ON_CPU_INLINE void __stcg(T* address, T value) { *address = value; } \
  CUDA_ON_CPU_INLINE void __stcs(T* address, T value) { *address = value; } \
  CUDA_ON_CPU_INLINE void __stwt(T* address, T value) { *address = value; }
CUDA_ON_CPU_FOR_EACH_LOADED(CUDA_ON_CPU_ACCESSES)
#undef CUDA_ON_CPU_ACCESSES
#undef CUDA_ON_CPU_FOR_EACH_LOADED

// torch has __ldg alone for its own types.
namespace c10 {
struct Half;
struct BFloat16;
template <class T, std::enable_if_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, int> = 0>
CUDA_ON_CPU_INLINE T __ldg(const T* address) {
  cuda_on_cpu::race_read_only(address, sizeof(T));
  return *address;
}
}  // namespace c10

inline bool __isGlobal(const void*) { return true; }
inline void __builtin_assume(bool) {}
inline void __assume(bool) {}
template <class T>
inline void __prefetch_global_l1(const T*) {}
template <class T>
inline void __prefetch_global_l2(const T*) {}
