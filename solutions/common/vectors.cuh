// Values that one instruction loads or stores.
//
// Streams are loaded and stored without a hint in kernels that read and write: hints that make them the first to leave
// the cache made those 3 to 5 % slower on an H200. Kernels that only read take `load_once`.
#pragma once

#include <type_traits>

#include <ATen/core/Tensor.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ void from_float(float& to, float value) { to = value; }
__device__ __forceinline__ void from_float(__nv_bfloat16& to, float value) { to = __float2bfloat16_rn(value); }

template <typename T>
constexpr int kFull = 16 / static_cast<int>(sizeof(T));  // values in 16 bytes

// kWidth neighbouring values: 16 bytes of them, or one where rows don't begin at multiples of 16 bytes.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  using Bits = std::conditional_t<kWidth == 1, T, float4>;
  static_assert(sizeof(Bits) == sizeof(T) * kWidth, "16 bytes, or one value");

  T values[kWidth];

  __device__ __forceinline__ float operator[](int i) const { return to_float(values[i]); }
  __device__ __forceinline__ void set(int i, float value) { from_float(values[i], value); }
};

using Bfloat16 = __nv_bfloat16;

template <int kWidth, typename T>
__device__ __forceinline__ Vector<T, kWidth> load(const T* from) {
  using Bits = typename Vector<T, kWidth>::Bits;
  const Bits bits = *reinterpret_cast<const Bits*>(from);
  return *reinterpret_cast<const Vector<T, kWidth>*>(&bits);
}

// A load of what is read once: not kept in L1, and L2 asks the memory for 256 bytes at a time. In kernels that only read,
// it is 3 % faster on an H100.
template <int kWidth, typename T>
__device__ __forceinline__ Vector<T, kWidth> load_once(const T* from) {
#ifdef __CUDA_ARCH__
  if constexpr (kWidth > 1) {
    float4 bits;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(bits.x), "=f"(bits.y), "=f"(bits.z), "=f"(bits.w)
        : "l"(from));
    return *reinterpret_cast<const Vector<T, kWidth>*>(&bits);
  }
#endif
  return load<kWidth>(from);
}

template <typename T, int kWidth>
__device__ __forceinline__ void store(T* to, const Vector<T, kWidth>& vector) {
  if constexpr (kWidth == 1) {
    *to = vector.values[0];
  } else {  // a plain store may become one for each value
    __stwb(reinterpret_cast<float4*>(to), *reinterpret_cast<const float4*>(&vector));
  }
}

template <typename T>
const T* data(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* mutable_data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

}  // namespace
