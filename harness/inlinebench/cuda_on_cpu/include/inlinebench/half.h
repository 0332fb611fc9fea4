// cuda_fp16.h: half precision, as CUDA's header of that name has it.
#pragma once

#include <type_traits>

#include "inlinebench/math.h"
#include "inlinebench/small_float.h"
#include "inlinebench/vector_types.h"

// torch's own type of the same format; converts both ways where torch's headers are there.
namespace c10 {
struct Half;
}

struct alignas(2) __half {
  unsigned short bits;

  __half() = default;
  static constexpr __half from_bits(unsigned short bits) { return __half(bits, 0); }
  __half(float value) : bits(inlinebench::half_bits(value)) {}
  __half(double value) : __half(inlinebench::round_to_odd(value)) {}
#define INLINEBENCH_FROM(T) \
  __half(T value) : __half(static_cast<double>(value)) {}
  INLINEBENCH_FROM(int)
  INLINEBENCH_FROM(unsigned)
  INLINEBENCH_FROM(short)
  INLINEBENCH_FROM(unsigned short)
  INLINEBENCH_FROM(long)
  INLINEBENCH_FROM(unsigned long)
  INLINEBENCH_FROM(long long)
  INLINEBENCH_FROM(unsigned long long)
#undef INLINEBENCH_FROM
  template <class T, std::enable_if_t<std::is_same_v<T, c10::Half>, int> = 0>
  __half(const T& value) : bits(value.x) {}

  operator float() const { return inlinebench::half_value(bits); }
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
  template <class T, std::enable_if_t<std::is_same_v<T, c10::Half>, int> = 0>
  operator T() const { return T(bits, T::from_bits()); }

 private:
  constexpr __half(unsigned short bits, int) : bits(bits) {}
};

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  __half2(const __half& x, const __half& y) : x(x), y(y) {}
  __half2(const __half& both) : x(both), y(both) {}
};

#define SCALAR __half
#define PAIR __half2
#include "inlinebench/small_float_functions.h"
#undef SCALAR
#undef PAIR

// Conversions between this type and others, under names that carry the type.
inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline __half __double2half(double x) { return x; }
inline float __half2float(__half x) { return x; }
inline __half2 __float2half2_rn(float x) { return {x, x}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
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
#define INLINEBENCH_WITH(T, NAME)                                                                                     \
  inline __half __##NAME##2half_rn(T x) { return static_cast<double>(x); }                                            \
  inline T __half2##NAME##_rn(__half x) { return inlinebench::saturate<T>(nearbyintf(x)); }                           \
  inline T __half2##NAME##_rz(__half x) { return inlinebench::saturate<T>(truncf(x)); }                               \
  inline T __half2##NAME##_rd(__half x) { return inlinebench::saturate<T>(floorf(x)); }                               \
  inline T __half2##NAME##_ru(__half x) { return inlinebench::saturate<T>(ceilf(x)); }
INLINEBENCH_WITH(int, int)
INLINEBENCH_WITH(unsigned, uint)
INLINEBENCH_WITH(short, short)
INLINEBENCH_WITH(unsigned short, ushort)
INLINEBENCH_WITH(long long, ll)
INLINEBENCH_WITH(unsigned long long, ull)
#undef INLINEBENCH_WITH

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

// The bits of a half, as older code keeps them.
struct __half_raw {
  unsigned short x;
};

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
