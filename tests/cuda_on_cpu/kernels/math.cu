// Device math, intrinsics and constants.
#include <cfloat>
#include <math_constants.h>

#include "case.h"

#define UNARY(NAME, EXPRESSION)                                           \
  __global__ void NAME##_kernel(const float* in, float* out, int n) {     \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                        \
    if (i >= n) return;                                                   \
    float x = in[i];                                                      \
    out[i] = EXPRESSION;                                                  \
  }                                                                       \
  extern "C" void NAME(const float* in, float* out, int n) { NAME##_kernel<<<(n + 63) / 64, 64>>>(in, out, n); }

UNARY(fast_exponential, __expf(x) + exp2f(x) + __exp10f(0.1f * x) + expm1f(x))
UNARY(fast_logarithm, __logf(x) + __log2f(x) + __log10f(x) + log1pf(x))
UNARY(fast_trigonometry, __sinf(x) + __cosf(x) + tanhf(x) + atan2f(x, 2.0f))
UNARY(roots, rsqrtf(x) + sqrtf(x) + cbrtf(x) + __frsqrt_rn(x) + __fsqrt_rn(x))
UNARY(division, __fdividef(1.0f, x) + __frcp_rn(x) + __fdiv_rn(2.0f, x) + fmodf(x, 0.75f))
UNARY(fused, fmaf(x, x, 1.0f) + __fmaf_rn(x, 2.0f, x) + __fmul_rn(x, x) + __fadd_rn(x, 1.0f))
UNARY(saturation, __saturatef(x - 2.0f) + fminf(x, 2.0f) + fmaxf(x, 1.0f) + fdimf(x, 1.5f))
UNARY(rounding, floorf(x) + ceilf(x) + rintf(x) + truncf(x) + roundf(x) + nearbyintf(x))
UNARY(error_function, erff(x) + erfcf(x) + normcdff(x) + erfinvf(0.2f * x))
UNARY(gelu, 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))))
UNARY(power, powf(x, 1.5f) + __powf(x, 2.0f) + pow(x, 2) + hypotf(x, 1.0f))
UNARY(pi_functions, sinpif(x) + cospif(x))
UNARY(overloads, abs(-x) + max(x, 1.0f) + min(x, 2.0f) + exp(x) + sqrt(x) + floor(x))
UNARY(classification, (isnan(x) ? 1.0f : 0.0f) + (isinf(x) ? 2.0f : 0.0f) + (isfinite(x) ? 4.0f : 0.0f) + (signbit(x) ? 8.0f : 0.0f))

__global__ void infinity_kernel(float* out) {
  out[0] = INFINITY, out[1] = -CUDART_INF_F, out[2] = CUDART_NAN_F, out[3] = FLT_MAX, out[4] = CUDART_PI_F, out[5] = NAN;
}
extern "C" void constants(float* out) { infinity_kernel<<<1, 1>>>(out); }

__global__ void bits_kernel(const unsigned* x, int* out, unsigned* words, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __popc(x[i]);
  out[n + i] = __clz(static_cast<int>(x[i]));
  out[2 * n + i] = __ffs(static_cast<int>(x[i]));
  out[3 * n + i] = __popcll(static_cast<unsigned long long>(x[i]) << 20);
  words[i] = __brev(x[i]);
  words[n + i] = __byte_perm(x[i], 0x01020304u, 0x7430);
  words[2 * n + i] = __umulhi(x[i], 0x9e3779b9u);
  words[3 * n + i] = __funnelshift_l(x[i], 0xdeadbeefu, 9);
}
extern "C" void bit_intrinsics(const unsigned* x, int* out, unsigned* words, int n) { bits_kernel<<<1, 64>>>(x, out, words, n); }

__global__ void conversions_kernel(const float* x, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __float2int_rn(x[i]);
  out[n + i] = __float2int_rz(x[i]);
  out[2 * n + i] = __float2int_ru(x[i]);
  out[3 * n + i] = __float2int_rd(x[i]);
  out[4 * n + i] = __float_as_int(x[i]);
  out[5 * n + i] = static_cast<int>(__int_as_float(__float_as_int(x[i])));
  out[6 * n + i] = static_cast<int>(__double2float_rn(__int2double_rn(i)));
}
extern "C" void conversions(const float* x, int* out, int n) { conversions_kernel<<<1, 64>>>(x, out, n); }

__global__ void double_kernel(const double* x, double* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = rsqrt(x[i]) + exp(-x[i]) + fma(x[i], x[i], 1.0) + fmax(x[i], 0.5) + __dadd_rn(x[i], 1.0) + erf(x[i]);
}
extern "C" void double_precision(const double* x, double* out, int n) { double_kernel<<<1, 64>>>(x, out, n); }

__global__ void minmax_kernel(int* out) {
  out[0] = max(3, -4), out[1] = min(3u, 4u), out[2] = static_cast<int>(max(1LL << 33, 5LL) >> 30), out[3] = abs(-9);
  out[4] = static_cast<int>(max(2.5f, 1.5) * 2), out[5] = __mulhi(1 << 30, 8), out[6] = __mul24(3, 5), out[7] = __dp4a(0x01020304, 0x01010101, 5);
  out[8] = static_cast<int>(max(1, 2u)), out[9] = -7 / 2, out[10] = -7 % 3, out[11] = __sad(3, -5, 1);
}
extern "C" void integer_functions(int* out) { minmax_kernel<<<1, 1>>>(out); }

__global__ void sincos_kernel(const float* x, float* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float s, c;
  sincosf(x[i], &s, &c);
  float fast_s, fast_c;
  __sincosf(x[i], &fast_s, &fast_c);
  out[i] = s + 2.0f * c;
  out[n + i] = fast_s + 2.0f * fast_c;
}
extern "C" void sine_and_cosine(const float* x, float* out, int n) { sincos_kernel<<<1, 64>>>(x, out, n); }
