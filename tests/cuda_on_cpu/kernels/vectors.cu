// Vector types, reinterpreted loads and cache hints.
#include "case.h"

__global__ void float4_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 >= n) return;
  float4 v = reinterpret_cast<const float4*>(x)[i];
  v.x += 1.0f, v.y *= 2.0f, v.z -= 3.0f, v.w = -v.w;
  reinterpret_cast<float4*>(out)[i] = v;
}
extern "C" void float4_load(const float* x, float* out, int n) { float4_kernel<<<(n / 4 + 31) / 32, 32>>>(x, out, n); }

__global__ void make_kernel(float* f, int* i, double* d) {
  float2 a = make_float2(1.0f, 2.0f);
  float3 b = make_float3(3.0f, 4.0f, 5.0f);
  int4 c = make_int4(6, 7, 8, 9);
  double2 e = make_double2(10.0, 11.0);
  uchar4 g = make_uchar4(1, 2, 3, 255);
  longlong2 h = make_longlong2(12, 13);
  f[0] = a.x + a.y, f[1] = b.x * b.y * b.z;
  i[0] = c.x + c.y + c.z + c.w, i[1] = g.x + g.w, i[2] = static_cast<int>(h.x * h.y);
  d[0] = e.x * e.y;
}
extern "C" void makers(float* f, int* i, double* d) { make_kernel<<<1, 1>>>(f, i, d); }

__global__ void sizes_kernel(int* out) {
  out[0] = sizeof(float3), out[1] = sizeof(float4), out[2] = alignof(float4), out[3] = alignof(float2);
  out[4] = sizeof(char3), out[5] = alignof(short4), out[6] = alignof(double2), out[7] = sizeof(dim3);
  out[8] = alignof(int3), out[9] = sizeof(ulonglong2), out[10] = alignof(uchar4), out[11] = sizeof(ushort3);
}
extern "C" void sizes(int* out) { sizes_kernel<<<1, 1>>>(out); }

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__global__ void operators_kernel(const float2* x, float2* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = x[i] + x[n - 1 - i];
}
extern "C" void own_operators(const float* x, float* out, int n) {
  operators_kernel<<<1, 64>>>((const float2*)x, reinterpret_cast<float2*>(out), n);
}

__global__ void hints_kernel(const float* x, const int4* y, float* out, int* z, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float a = __ldg(x + i), b = __ldg(&x[i]), c = __ldcs(x + i), d = __ldcg(x + i), e = __ldca(x + i);
  int4 v = __ldg(&y[i]);
  __stcs(out + i, a + b + c + d + e);
  __stcg(z + i, v.x + v.y + v.z + v.w);
}
extern "C" void cache_hints(const float* x, const int* y, float* out, int* z, int n) {
  hints_kernel<<<1, 64>>>(x, (const int4*)y, out, z, n);
}

struct __align__(16) Particle {
  float position[3];
  int kind;
};
__global__ void aligned_kernel(const Particle* x, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = x[i].position[0] + x[i].position[1] + x[i].position[2] + x[i].kind + alignof(Particle);
}
extern "C" void aligned_struct(const float* x, float* out, int n) { aligned_kernel<<<1, 32>>>((const Particle*)x, out, n); }

template <typename T, int N>
struct alignas(sizeof(T) * N) Packed {
  T values[N];
};
__global__ void packed_kernel(const float* x, float* out, int n) {
  using Vector = Packed<float, 4>;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 >= n) return;
  Vector v = *reinterpret_cast<const Vector*>(x + 4 * i);
#pragma unroll
  for (int k = 0; k < 4; ++k) v.values[k] *= k + 1;
  *reinterpret_cast<Vector*>(out + 4 * i) = v;
}
extern "C" void aligned_vector(const float* x, float* out, int n) { packed_kernel<<<(n / 4 + 15) / 16, 16>>>(x, out, n); }

__global__ void bytes_kernel(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  uchar4 v = *reinterpret_cast<const uchar4*>(x + i);
  unsigned char held = v.x;
  v.x = v.w, v.w = held;
  out[i] = *reinterpret_cast<unsigned*>(&v);
}
extern "C" void byte_vectors(const unsigned* x, unsigned* out, int n) { bytes_kernel<<<1, 64>>>(x, out, n); }
