// CUDA's vector types: float4, int2, dim3, make_float4 and so on.
//
// Sizes and alignments are the hardware's, so that a reinterpret_cast load of a misaligned address faults here as it does
// there (the compiler uses aligned moves for 16-byte vectors).
#pragma once

#define CUDA_ON_CPU_VECTOR(NAME, SCALAR, ALIGN2, ALIGN4)                                                              \
  struct NAME##1 {                                                                                                    \
    SCALAR x;                                                                                                         \
  };                                                                                                                  \
  struct alignas(ALIGN2) NAME##2 {                                                                                    \
    SCALAR x, y;                                                                                                      \
  };                                                                                                                  \
  struct NAME##3 {                                                                                                    \
    SCALAR x, y, z;                                                                                                   \
  };                                                                                                                  \
  struct alignas(ALIGN4) NAME##4 {                                                                                    \
    SCALAR x, y, z, w;                                                                                                \
  };                                                                                                                  \
  constexpr NAME##1 make_##NAME##1(SCALAR x) { return {x}; }                                                          \
  constexpr NAME##2 make_##NAME##2(SCALAR x, SCALAR y) { return {x, y}; }                                             \
  constexpr NAME##3 make_##NAME##3(SCALAR x, SCALAR y, SCALAR z) { return {x, y, z}; }                                \
  constexpr NAME##4 make_##NAME##4(SCALAR x, SCALAR y, SCALAR z, SCALAR w) { return {x, y, z, w}; }

CUDA_ON_CPU_VECTOR(char, signed char, 2, 4)
CUDA_ON_CPU_VECTOR(uchar, unsigned char, 2, 4)
CUDA_ON_CPU_VECTOR(short, short, 4, 8)
CUDA_ON_CPU_VECTOR(ushort, unsigned short, 4, 8)
CUDA_ON_CPU_VECTOR(int, int, 8, 16)
CUDA_ON_CPU_VECTOR(uint, unsigned int, 8, 16)
CUDA_ON_CPU_VECTOR(long, long, 16, 16)
CUDA_ON_CPU_VECTOR(ulong, unsigned long, 16, 16)
CUDA_ON_CPU_VECTOR(longlong, long long, 16, 16)
CUDA_ON_CPU_VECTOR(ulonglong, unsigned long long, 16, 16)
CUDA_ON_CPU_VECTOR(float, float, 8, 16)
CUDA_ON_CPU_VECTOR(double, double, 16, 16)

#undef CUDA_ON_CPU_VECTOR

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
