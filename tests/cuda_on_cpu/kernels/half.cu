// Half and bfloat16: conversions, arithmetic, pairs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "case.h"

__global__ void round_half_kernel(const float* x, unsigned short* bits, float* back, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half h = __float2half(x[i]);
  bits[i] = __half_as_ushort(h);
  back[i] = __half2float(h);
}
extern "C" void round_to_half(const float* x, unsigned short* bits, float* back, int n) {
  round_half_kernel<<<(n + 63) / 64, 64>>>(x, bits, back, n);
}

__global__ void round_bfloat_kernel(const float* x, unsigned short* bits, float* back, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __nv_bfloat16 h = __float2bfloat16(x[i]);
  bits[i] = __bfloat16_as_ushort(h);
  back[i] = __bfloat162float(h);
}
extern "C" void round_to_bfloat16(const float* x, unsigned short* bits, float* back, int n) {
  round_bfloat_kernel<<<(n + 63) / 64, 64>>>(x, bits, back, n);
}

__global__ void arithmetic_kernel(const __half* a, const __half* b, __half* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __hadd(a[i], b[i]);
  out[n + i] = __hsub(a[i], b[i]);
  out[2 * n + i] = __hmul(a[i], b[i]);
  out[3 * n + i] = __hdiv(a[i], b[i]);
  out[4 * n + i] = __hfma(a[i], b[i], a[i]);
  out[5 * n + i] = __hneg(__habs(a[i]));
  out[6 * n + i] = __hmax(a[i], b[i]);
  out[7 * n + i] = __hlt(a[i], b[i]) ? __float2half(1.0f) : __float2half(0.0f);
}
extern "C" void half_intrinsics(const __half* a, const __half* b, __half* out, int n) { arithmetic_kernel<<<1, 128>>>(a, b, out, n); }

__global__ void half_operators_kernel(const __half* a, const __half* b, __half* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  __half sum = a[i] + b[i];
  sum *= b[i];
  sum -= __half(1.0f);
  out[i] = a[i] > b[i] ? sum : -sum;
}
extern "C" void half_operators(const __half* a, const __half* b, __half* out, int n) { half_operators_kernel<<<1, 128>>>(a, b, out, n); }

__global__ void half2_kernel(const __half2* a, const __half2* b, __half2* out, float2* wide, int pairs) {
  int i = threadIdx.x;
  if (i >= pairs) return;
  __half2 v = __hfma2(a[i], b[i], __float2half2_rn(0.5f));
  v = __hadd2(v, __halves2half2(__low2half(a[i]), __high2half(b[i])));
  out[i] = v;
  float2 f = __half22float2(v);
  wide[i] = make_float2(f.y, f.x);
}
extern "C" void half2_pairs(const void* a, const void* b, void* out, float* wide, int pairs) {
  half2_kernel<<<1, 64>>>((const __half2*)a, (const __half2*)b, (__half2*)out, (float2*)wide, pairs);
}

__global__ void bfloat_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __hadd(a[i], b[i]);
  out[n + i] = a[i] * b[i];
  out[2 * n + i] = __float2bfloat16(__bfloat162float(a[i]) / __bfloat162float(b[i]));
  out[3 * n + i] = __hmin(a[i], b[i]);
}
extern "C" void bfloat16_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n) {
  bfloat_kernel<<<1, 128>>>(a, b, out, n);
}

__global__ void bfloat2_kernel(const __nv_bfloat162* a, __nv_bfloat162* out, int pairs) {
  int i = threadIdx.x;
  if (i >= pairs) return;
  float2 f = __bfloat1622float2(a[i]);
  out[i] = __floats2bfloat162_rn(f.x + f.y, f.x - f.y);
}
extern "C" void bfloat162_pairs(const void* a, void* out, int pairs) {
  bfloat2_kernel<<<1, 64>>>((const __nv_bfloat162*)a, (__nv_bfloat162*)out, pairs);
}

__global__ void math_kernel(const __half* x, __half* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = hexp(x[i]);
  out[n + i] = hsqrt(x[i]);
  out[2 * n + i] = hlog(x[i]);
  out[3 * n + i] = hrcp(x[i]);
  out[4 * n + i] = hfloor(x[i]);
}
extern "C" void half_math(const __half* x, __half* out, int n) { math_kernel<<<1, 128>>>(x, out, n); }

__global__ void integers_kernel(const float* x, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  __half h = __float2half_rn(x[i]);
  out[i] = __half2int_rn(h);
  out[n + i] = __half2int_rz(h);
  out[2 * n + i] = static_cast<int>(h);
  out[3 * n + i] = static_cast<int>(__half2float(__int2half_rn(i * 3)));
}
extern "C" void half_and_integers(const float* x, int* out, int n) { integers_kernel<<<1, 128>>>(x, out, n); }

__global__ void atomic_kernel(__half* x, __half2* y) {
  atomicAdd(x, __float2half(0.5f));
  atomicAdd(y, __floats2half2_rn(1.0f, 2.0f));
}
extern "C" void half_atomics(void* x, void* y) { atomic_kernel<<<2, 64>>>((__half*)x, (__half2*)y); }

__global__ void half_shuffle_kernel(const __half* x, float* out) {
  __half v = x[threadIdx.x];
  for (int offset = 16; offset; offset /= 2) v = __hadd(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (threadIdx.x == 0) out[0] = __half2float(v);
}
extern "C" void half_shuffle(const void* x, float* out) { half_shuffle_kernel<<<1, 32>>>((const __half*)x, out); }

__global__ void vector_load_kernel(const __half* x, __half* out, int n) {
  int i = threadIdx.x * 8;
  if (i >= n) return;
  float4 packed = *reinterpret_cast<const float4*>(x + i);
  __half2* pairs = reinterpret_cast<__half2*>(&packed);
#pragma unroll
  for (int k = 0; k < 4; ++k) pairs[k] = __hmul2(pairs[k], __float2half2_rn(2.0f));
  *reinterpret_cast<float4*>(out + i) = packed;
}
extern "C" void half_vector_load(const void* x, void* out, int n) { vector_load_kernel<<<1, 32>>>((const __half*)x, (__half*)out, n); }
