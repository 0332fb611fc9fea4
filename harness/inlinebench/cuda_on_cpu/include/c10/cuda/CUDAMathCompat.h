// Math under one name for float and double.
#pragma once

#include "inlinebench/math.h"

namespace c10::cuda::compat {
#define INLINEBENCH_COMPAT(NAME)                    \
  inline float NAME(float x) { return ::NAME##f(x); } \
  inline double NAME(double x) { return ::NAME(x); }
INLINEBENCH_COMPAT(ceil)
INLINEBENCH_COMPAT(exp)
INLINEBENCH_COMPAT(floor)
INLINEBENCH_COMPAT(log)
INLINEBENCH_COMPAT(log1p)
INLINEBENCH_COMPAT(sin)
INLINEBENCH_COMPAT(cos)
INLINEBENCH_COMPAT(sqrt)
INLINEBENCH_COMPAT(rsqrt)
INLINEBENCH_COMPAT(tan)
INLINEBENCH_COMPAT(tanh)
INLINEBENCH_COMPAT(normcdf)
#undef INLINEBENCH_COMPAT
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline float max(float x, float y) { return ::fmaxf(x, y); }
inline double max(double x, double y) { return ::fmax(x, y); }
inline float min(float x, float y) { return ::fminf(x, y); }
inline double min(double x, double y) { return ::fmin(x, y); }
inline float pow(float x, float y) { return ::powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }
inline float div(float x, float y) { return x / y; }
inline double div(double x, double y) { return x / y; }
inline void sincos(float x, float* s, float* c) { *s = ::sinf(x), *c = ::cosf(x); }
inline void sincos(double x, double* s, double* c) { *s = ::sin(x), *c = ::cos(x); }
}  // namespace c10::cuda::compat
