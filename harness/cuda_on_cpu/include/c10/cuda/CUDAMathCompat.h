// Math under one name for float and double.
#pragma once

#include "cuda_on_cpu/math.h"

namespace c10::cuda::compat {
#define CUDA_ON_CPU_COMPAT(NAME)                    \
  inline float NAME(float x) { return ::NAME##f(x); } \
  inline double NAME(double x) { return ::NAME(x); }
CUDA_ON_CPU_COMPAT(ceil)
CUDA_ON_CPU_COMPAT(exp)
CUDA_ON_CPU_COMPAT(floor)
CUDA_ON_CPU_COMPAT(log)
CUDA_ON_CPU_COMPAT(log1p)
CUDA_ON_CPU_COMPAT(sin)
CUDA_ON_CPU_COMPAT(cos)
CUDA_ON_CPU_COMPAT(sqrt)
CUDA_ON_CPU_COMPAT(rsqrt)
CUDA_ON_CPU_COMPAT(tan)
CUDA_ON_CPU_COMPAT(tanh)
CUDA_ON_CPU_COMPAT(normcdf)
#undef CUDA_ON_CPU_COMPAT
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
