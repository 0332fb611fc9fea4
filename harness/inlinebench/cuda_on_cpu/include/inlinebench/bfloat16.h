// cuda_bf16.h: bfloat16, as CUDA's header of that name has it.
#pragma once

#include <type_traits>

#include "inlinebench/math.h"
#include "inlinebench/small_float.h"
#include "inlinebench/vector_types.h"

// torch's own type of the same format; converts both ways where torch's headers are there.
namespace c10 {
struct BFloat16;
}

struct alignas(2) __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  static constexpr __nv_bfloat16 from_bits(unsigned short bits) { return __nv_bfloat16(bits, 0); }
  __nv_bfloat16(float value) : bits(inlinebench::bfloat16_bits(value)) {}
  __nv_bfloat16(double value) : __nv_bfloat16(inlinebench::round_to_odd(value)) {}
#define INLINEBENCH_FROM(T) \
  __nv_bfloat16(T value) : __nv_bfloat16(static_cast<double>(value)) {}
  INLINEBENCH_FROM(int)
  INLINEBENCH_FROM(unsigned)
  INLINEBENCH_FROM(short)
  INLINEBENCH_FROM(unsigned short)
  INLINEBENCH_FROM(long)
  INLINEBENCH_FROM(unsigned long)
  INLINEBENCH_FROM(long long)
  INLINEBENCH_FROM(unsigned long long)
#undef INLINEBENCH_FROM
  template <class T, std::enable_if_t<std::is_same_v<T, c10::BFloat16>, int> = 0>
  __nv_bfloat16(const T& value) : bits(value.x) {}

  operator float() const { return inlinebench::bfloat16_value(bits); }
#define INLINEBENCH_TO(T) \
  explicit operator T() const { return inlinebench::saturate<T>(float(*this)); }
  INLINEBENCH_TO(signed char)
  INLINEBENCH_TO(unsigned char)
  INLINEBENCH_TO(char)
  INLINEBENCH_TO(short)
  INLINEBENCH_TO(unsigned short)
  INLINEBENCH_TO(int)
  INLINEBENCH_TO(unsigned)
  INLINEBENCH_TO(long)
  INLINEBENCH_TO(unsigned long)
  INLINEBENCH_TO(long long)
  INLINEBENCH_TO(unsigned long long)
#undef INLINEBENCH_TO
  explicit operator bool() const { return (bits & 0x7fff) != 0; }
  template <class T, std::enable_if_t<std::is_same_v<T, c10::BFloat16>, int> = 0>
  operator T() const { return T(bits, T::from_bits()); }

 private:
  constexpr __nv_bfloat16(unsigned short bits, int) : bits(bits) {}
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __nv_bfloat162(const __nv_bfloat16& x, const __nv_bfloat16& y) : x(x), y(y) {}
  __nv_bfloat162(const __nv_bfloat16& both) : x(both), y(both) {}
};

#define SCALAR __nv_bfloat16
#define PAIR __nv_bfloat162
#include "inlinebench/small_float_functions.h"
#undef SCALAR
#undef PAIR

// Conversions between this type and others, under names that carry the type.
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __nv_bfloat16 __double2bfloat16(double x) { return x; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
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
#define INLINEBENCH_WITH(T, NAME)                                                                                     \
  inline __nv_bfloat16 __##NAME##2bfloat16_rn(T x) { return static_cast<double>(x); }                                            \
  inline T __bfloat162##NAME##_rn(__nv_bfloat16 x) { return inlinebench::saturate<T>(nearbyintf(x)); }                           \
  inline T __bfloat162##NAME##_rz(__nv_bfloat16 x) { return inlinebench::saturate<T>(truncf(x)); }                               \
  inline T __bfloat162##NAME##_rd(__nv_bfloat16 x) { return inlinebench::saturate<T>(floorf(x)); }                               \
  inline T __bfloat162##NAME##_ru(__nv_bfloat16 x) { return inlinebench::saturate<T>(ceilf(x)); }
INLINEBENCH_WITH(int, int)
INLINEBENCH_WITH(unsigned, uint)
INLINEBENCH_WITH(short, short)
INLINEBENCH_WITH(unsigned short, ushort)
INLINEBENCH_WITH(long long, ll)
INLINEBENCH_WITH(unsigned long long, ull)
#undef INLINEBENCH_WITH

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

struct __nv_bfloat16_raw {
  unsigned short x;
};

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
