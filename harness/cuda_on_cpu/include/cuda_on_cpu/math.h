// Device math: what CUDA declares in the global namespace and the C++ library does not.
//
// The fast versions (__expf and so on) are as exact as the ordinary ones here, as CUDA allows.
#pragma once

#include <math.h>

#include <cmath>
#include <cstdlib>

#include "cuda_on_cpu/integers.h"

#define CUDA_ON_CPU_PI 3.14159265358979323846

// glibc's own header declares functions with some of these names, which it does not export; a macro steps around them.
#define __expf cuda_on_cpu_expf
#define __exp10f cuda_on_cpu_exp10f
#define __logf cuda_on_cpu_logf
#define __log2f cuda_on_cpu_log2f
#define __log10f cuda_on_cpu_log10f
#define __powf cuda_on_cpu_powf
#define __sinf cuda_on_cpu_sinf
#define __cosf cuda_on_cpu_cosf
#define __tanf cuda_on_cpu_tanf
#define __tanhf cuda_on_cpu_tanhf
#define __sincosf cuda_on_cpu_sincosf
#define __fdividef cuda_on_cpu_fdividef

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // NaN gives 0

// The C library has some of these since C23.
#if !defined(__GLIBC_PREREQ) || !__GLIBC_PREREQ(2, 42)
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#endif
#if !defined(__GLIBC_PREREQ) || !__GLIBC_PREREQ(2, 41)
inline float sinpif(float x) { return static_cast<float>(::sin(CUDA_ON_CPU_PI * fmod(static_cast<double>(x), 2.0))); }
inline double sinpi(double x) { return ::sin(CUDA_ON_CPU_PI * fmod(x, 2.0)); }
inline float cospif(float x) { return static_cast<float>(::cos(CUDA_ON_CPU_PI * fmod(static_cast<double>(x), 2.0))); }
inline double cospi(double x) { return ::cos(CUDA_ON_CPU_PI * fmod(x, 2.0)); }
#endif
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline double erfcx(double x) { return ::exp(x * x) * erfc(x); }
inline float erfcxf(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline float norm3df(float a, float b, float c) { return static_cast<float>(::sqrt(double(a) * a + double(b) * b + double(c) * c)); }
inline double norm3d(double a, double b, double c) { return ::sqrt(a * a + b * b + c * c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }

namespace cuda_on_cpu {
// Newton steps on a starting value good to 2e-3.
inline double inverse_erf(double x) {
  if (!(x > -1.0 && x < 1.0)) return x == 1.0 ? HUGE_VAL : x == -1.0 ? -HUGE_VAL : NAN;
  double w = ::log((1.0 - x) * (1.0 + x)), t = 4.330746750799873 + w / 2.0;
  double y = copysign(::sqrt(::sqrt(t * t - w / 0.147) - t), x);
  for (int step = 0; step < 4; ++step) y -= (erf(y) - x) * 0.886226925452758 * ::exp(y * y);
  return y;
}
}  // namespace cuda_on_cpu
inline double erfinv(double x) { return cuda_on_cpu::inverse_erf(x); }
inline float erfinvf(float x) { return static_cast<float>(cuda_on_cpu::inverse_erf(x)); }
inline double erfcinv(double x) { return cuda_on_cpu::inverse_erf(1.0 - x); }
inline float erfcinvf(float x) { return static_cast<float>(cuda_on_cpu::inverse_erf(1.0 - x)); }
inline double normcdfinv(double x) { return 1.41421356237309504880 * cuda_on_cpu::inverse_erf(2.0 * x - 1.0); }
inline float normcdfinvf(float x) { return static_cast<float>(normcdfinv(x)); }

// Directed rounding: nearest is what the CPU does; the others are good to one unit in the last place, on the right side.
#define CUDA_ON_CPU_ROUNDED(T, SUFFIX, BINARY, FMA, NEXT)                                                     \
  inline T __##BINARY##add_##SUFFIX(T a, T b) { return NEXT(a + b, static_cast<long double>(a) + b); }        \
  inline T __##BINARY##sub_##SUFFIX(T a, T b) { return NEXT(a - b, static_cast<long double>(a) - b); }        \
  inline T __##BINARY##mul_##SUFFIX(T a, T b) { return NEXT(a * b, static_cast<long double>(a) * b); }        \
  inline T __##BINARY##div_##SUFFIX(T a, T b) { return NEXT(a / b, static_cast<long double>(a) / b); }        \
  inline T __##BINARY##sqrt_##SUFFIX(T a) { return NEXT(std::sqrt(a), sqrtl(a)); }                            \
  inline T __##BINARY##rcp_##SUFFIX(T a) { return NEXT(1 / a, 1 / static_cast<long double>(a)); }             \
  inline T FMA##_##SUFFIX(T a, T b, T c) { return NEXT(std::fma(a, b, c), static_cast<long double>(a) * b + c); }
namespace cuda_on_cpu {
template <class T>
T nearest(T value, long double) { return value; }
template <class T>
T upward(T value, long double exact) { return value < exact ? std::nextafter(value, T(HUGE_VAL)) : value; }
template <class T>
T downward(T value, long double exact) { return value > exact ? std::nextafter(value, T(-HUGE_VAL)) : value; }
template <class T>
T to_zero(T value, long double exact) {
  return std::fabs(static_cast<long double>(value)) > std::fabs(exact) ? std::nextafter(value, T(0)) : value;
}
}  // namespace cuda_on_cpu
CUDA_ON_CPU_ROUNDED(float, rn, f, __fmaf, cuda_on_cpu::nearest)
CUDA_ON_CPU_ROUNDED(float, ru, f, __fmaf, cuda_on_cpu::upward)
CUDA_ON_CPU_ROUNDED(float, rd, f, __fmaf, cuda_on_cpu::downward)
CUDA_ON_CPU_ROUNDED(float, rz, f, __fmaf, cuda_on_cpu::to_zero)
CUDA_ON_CPU_ROUNDED(double, rn, d, __fma, cuda_on_cpu::nearest)
CUDA_ON_CPU_ROUNDED(double, ru, d, __fma, cuda_on_cpu::upward)
CUDA_ON_CPU_ROUNDED(double, rd, d, __fma, cuda_on_cpu::downward)
CUDA_ON_CPU_ROUNDED(double, rz, d, __fma, cuda_on_cpu::to_zero)
#undef CUDA_ON_CPU_ROUNDED
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / ::sqrt(static_cast<double>(x))); }

// min and max for every pair of arithmetic types, as CUDA has them. Not templates, so that they win over std's where
// both are visible. A NaN operand loses, as in fmin and fmax.
#define CUDA_ON_CPU_MIN_MAX(R, A, B)                                                  \
  constexpr R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b); } \
  constexpr R max(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a); }
CUDA_ON_CPU_MIN_MAX(int, int, int)
CUDA_ON_CPU_MIN_MAX(unsigned, unsigned, unsigned)
CUDA_ON_CPU_MIN_MAX(unsigned, int, unsigned)
CUDA_ON_CPU_MIN_MAX(unsigned, unsigned, int)
CUDA_ON_CPU_MIN_MAX(long, long, long)
CUDA_ON_CPU_MIN_MAX(unsigned long, unsigned long, unsigned long)
CUDA_ON_CPU_MIN_MAX(unsigned long, long, unsigned long)
CUDA_ON_CPU_MIN_MAX(unsigned long, unsigned long, long)
CUDA_ON_CPU_MIN_MAX(long long, long long, long long)
CUDA_ON_CPU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
CUDA_ON_CPU_MIN_MAX(unsigned long long, long long, unsigned long long)
CUDA_ON_CPU_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef CUDA_ON_CPU_MIN_MAX
#define CUDA_ON_CPU_FLOAT_MIN_MAX(R, A, B, FMIN, FMAX)    \
  inline R min(A a, B b) { return FMIN(R(a), R(b)); }     \
  inline R max(A a, B b) { return FMAX(R(a), R(b)); }
CUDA_ON_CPU_FLOAT_MIN_MAX(float, float, float, fminf, fmaxf)
CUDA_ON_CPU_FLOAT_MIN_MAX(double, double, double, ::fmin, ::fmax)
CUDA_ON_CPU_FLOAT_MIN_MAX(double, float, double, ::fmin, ::fmax)
CUDA_ON_CPU_FLOAT_MIN_MAX(double, double, float, ::fmin, ::fmax)
#undef CUDA_ON_CPU_FLOAT_MIN_MAX
