// cuda_fp16.h: half precision, as CUDA's header of that name has it.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/small_float.h"
#include "cuda_on_cpu/vector_types.h"

// torch's own type of the same format; converts both ways where torch's headers are there.
namespace c10 {
struct Half;
}
struct __nv_bfloat16;

#define SCALAR __half
#define PAIR __half2
#define SCALAR_RAW __half_raw
#define PAIR_RAW __half2_raw
#define ENCODE half_bits
#define DECODE half_value
#define OTHER __nv_bfloat16
#define TORCHS c10::Half
#define EXPLICIT
#define CONVERTS !defined(__CUDA_NO_HALF_CONVERSIONS__)
#define OPERATORS !defined(__CUDA_NO_HALF_OPERATORS__)
#define PAIR_OPERATORS !defined(__CUDA_NO_HALF2_OPERATORS__)
#include "cuda_on_cpu/small_float_type.h"
#include "cuda_on_cpu/small_float_functions.h"
#undef SCALAR
#undef PAIR
#undef SCALAR_RAW
#undef PAIR_RAW
#undef ENCODE
#undef DECODE
#undef OTHER
#undef TORCHS
#undef EXPLICIT
#undef CONVERTS
#undef OPERATORS
#undef PAIR_OPERATORS

// Conversions between this type and others, under names that carry the type.
inline __half __float2half(float x) { return __half::from_float(x); }
inline __half __float2half_rn(float x) { return __half::from_float(x); }
inline __half __double2half(double x) { return __half::from_double(x); }
inline float __half2float(__half x) { return x.to_float(); }
inline __half2 __float2half2_rn(float x) { return __half2::from_floats(x, x); }
inline __half2 __floats2half2_rn(float x, float y) { return __half2::from_floats(x, y); }
inline __half2 __float22half2_rn(float2 v) { return __half2::from_floats(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return {v.x.to_float(), v.y.to_float()}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline short __half_as_short(__half x) { return static_cast<short>(x.bits); }
inline __half __ushort_as_half(unsigned short x) { return __half::from_bits(x); }
inline __half __short_as_half(short x) { return __half::from_bits(static_cast<unsigned short>(x)); }
#define CUDA_ON_CPU_WITH(T, NAME)                                                                                     \
  inline __half __##NAME##2half_rn(T x) { return __half::from_double(static_cast<double>(x)); } \
  inline T __half2##NAME##_rn(__half x) { return cuda_on_cpu::saturate<T>(nearbyintf(x.to_float())); }                \
  inline T __half2##NAME##_rz(__half x) { return cuda_on_cpu::saturate<T>(truncf(x.to_float())); }                    \
  inline T __half2##NAME##_rd(__half x) { return cuda_on_cpu::saturate<T>(floorf(x.to_float())); }                    \
  inline T __half2##NAME##_ru(__half x) { return cuda_on_cpu::saturate<T>(ceilf(x.to_float())); }
CUDA_ON_CPU_WITH(int, int)
CUDA_ON_CPU_WITH(unsigned, uint)
CUDA_ON_CPU_WITH(short, short)
CUDA_ON_CPU_WITH(unsigned short, ushort)
CUDA_ON_CPU_WITH(long long, ll)
CUDA_ON_CPU_WITH(unsigned long long, ull)
#undef CUDA_ON_CPU_WITH

using half = __half;
using half2 = __half2;
using nv_half = __half;
using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;
using nv_half2 = __half2;

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
