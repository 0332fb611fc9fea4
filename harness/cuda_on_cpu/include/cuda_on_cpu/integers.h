// Integer and bit intrinsics, and the conversions between numbers and bits.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cuda_on_cpu {
template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// The hardware's conversion: out of range saturates, NaN is 0 (for 64 bits the most negative, kept simple as 0 too).
template <class To, class From>
inline To saturate(From value) {
  using limits = std::numeric_limits<To>;
  if (value != value) return 0;
  if (value <= static_cast<From>(limits::min())) return limits::min();
  if (value >= static_cast<From>(limits::max())) return limits::max();
  return static_cast<To>(value);
}

template <class T>
inline T reverse_bits(T x) {
  T reversed = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) reversed = static_cast<T>(reversed << 1 | (x >> i & 1));
  return reversed;
}
}  // namespace cuda_on_cpu

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) { return cuda_on_cpu::reverse_bits(x); }
inline unsigned long long __brevll(unsigned long long x) { return cuda_on_cpu::reverse_bits(x); }
inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return c + (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b) : static_cast<unsigned>(b) - static_cast<unsigned>(a));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((std::uint64_t{a} + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((std::uint64_t{a} + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned choice = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7))) & 0xff;
    if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<std::int8_t>(a >> (8 * i)) * static_cast<std::int8_t>(b >> (8 * i));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
  return c;
}

inline int __float_as_int(float x) { return cuda_on_cpu::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return cuda_on_cpu::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return cuda_on_cpu::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return cuda_on_cpu::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_on_cpu::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_on_cpu::bits_as<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

#define CUDA_ON_CPU_TO_INTEGER(FROM, FNAME, TO, TNAME)                                                                 \
  inline TO __##FNAME##2##TNAME##_rn(FROM x) { return cuda_on_cpu::saturate<TO>(std::nearbyint(x)); }                 \
  inline TO __##FNAME##2##TNAME##_rz(FROM x) { return cuda_on_cpu::saturate<TO>(std::trunc(x)); }                     \
  inline TO __##FNAME##2##TNAME##_ru(FROM x) { return cuda_on_cpu::saturate<TO>(std::ceil(x)); }                      \
  inline TO __##FNAME##2##TNAME##_rd(FROM x) { return cuda_on_cpu::saturate<TO>(std::floor(x)); }
#define CUDA_ON_CPU_TO_INTEGERS(FROM, FNAME)                             \
  CUDA_ON_CPU_TO_INTEGER(FROM, FNAME, int, int)                          \
  CUDA_ON_CPU_TO_INTEGER(FROM, FNAME, unsigned, uint)                    \
  CUDA_ON_CPU_TO_INTEGER(FROM, FNAME, long long, ll)                     \
  CUDA_ON_CPU_TO_INTEGER(FROM, FNAME, unsigned long long, ull)
CUDA_ON_CPU_TO_INTEGERS(float, float)
CUDA_ON_CPU_TO_INTEGERS(double, double)
#undef CUDA_ON_CPU_TO_INTEGERS
#undef CUDA_ON_CPU_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __double2float_rz(double x) {
  float nearest = static_cast<float>(x);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(x) ? std::nextafter(nearest, 0.0f) : nearest;
}
