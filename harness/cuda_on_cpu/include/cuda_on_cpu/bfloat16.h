// cuda_bf16.h: bfloat16, as CUDA's header of that name has it.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/small_float.h"
#include "cuda_on_cpu/vector_types.h"

// torch's own type of the same format; converts both ways where torch's headers are there.
namespace c10 {
struct BFloat16;
}
struct __half;

#define SCALAR __nv_bfloat16
#define PAIR __nv_bfloat162
#define SCALAR_RAW __nv_bfloat16_raw
#define PAIR_RAW __nv_bfloat162_raw
#define ENCODE bfloat16_bits
#define DECODE bfloat16_value
#define OTHER __half
#define TORCHS c10::BFloat16
#define EXPLICIT explicit
#define CONVERTS !defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
#define OPERATORS !defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define PAIR_OPERATORS !defined(__CUDA_NO_BFLOAT162_OPERATORS__)
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
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16::from_float(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16::from_float(x); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16::from_double(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return x.to_float(); }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162::from_floats(x, x); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return __nv_bfloat162::from_floats(x, y); }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __nv_bfloat162::from_floats(v.x, v.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x.to_float(), v.y.to_float()}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return {v.y, v.x}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.bits); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16::from_bits(x); }
inline __nv_bfloat16 __short_as_bfloat16(short x) { return __nv_bfloat16::from_bits(static_cast<unsigned short>(x)); }
#define CUDA_ON_CPU_WITH(T, NAME)                                                                                     \
  inline __nv_bfloat16 __##NAME##2bfloat16_rn(T x) { return __nv_bfloat16::from_double(static_cast<double>(x)); } \
  inline T __bfloat162##NAME##_rn(__nv_bfloat16 x) { return cuda_on_cpu::saturate<T>(nearbyintf(x.to_float())); }     \
  inline T __bfloat162##NAME##_rz(__nv_bfloat16 x) { return cuda_on_cpu::saturate<T>(truncf(x.to_float())); }         \
  inline T __bfloat162##NAME##_rd(__nv_bfloat16 x) { return cuda_on_cpu::saturate<T>(floorf(x.to_float())); }         \
  inline T __bfloat162##NAME##_ru(__nv_bfloat16 x) { return cuda_on_cpu::saturate<T>(ceilf(x.to_float())); }
CUDA_ON_CPU_WITH(int, int)
CUDA_ON_CPU_WITH(unsigned, uint)
CUDA_ON_CPU_WITH(short, short)
CUDA_ON_CPU_WITH(unsigned short, ushort)
CUDA_ON_CPU_WITH(long long, ll)
CUDA_ON_CPU_WITH(unsigned long long, ull)
#undef CUDA_ON_CPU_WITH

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
