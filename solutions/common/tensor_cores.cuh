// Tensor cores by mma.sync, for every GPU from compute capability 8.0: 16 x 16 by 16 x 8 halves, with sums in float.
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "checks.cuh"

namespace {

// Four matrices of 8 x 8 halves, turned or not. Threads 0 to 7 say where the rows of the first are, 8 to 15 those of the
// second.
template <bool Turned = false, typename Half>
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const Half* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
}

// 16 rows and 16 steps of K of the left operand: the rows of its upper half, then of its lower half, then those of both
// for the last 8 steps. That is the order in which the product takes its registers.
template <typename Half>
__device__ __forceinline__ void load_left(uint32_t (&to)[4], const Half* from, int stride) {
  const int lane = threadIdx.x % kWarpSize;
  load_matrices(to, from + lane % 16 * stride + lane / 16 * 8);
}

// The same of the right operand, of which a product takes 8 rows: first both halves of K of the upper 8 rows.
template <typename Half>
__device__ __forceinline__ void load_right(uint32_t (&to)[4], const Half* from, int stride) {
  const int lane = threadIdx.x % kWarpSize;
  load_matrices(to, from + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}

// sums += left * right, 16 x 16 by 16 x 8. right[0] and right[1] have the first and the last 8 steps of K.
template <typename Half>
__device__ __forceinline__ void multiply_fragment(float* sums, const uint32_t (&left)[4], const uint32_t* right) {
  if constexpr (std::is_same_v<Half, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  } else {
    static_assert(std::is_same_v<Half, __nv_bfloat16>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
}

}  // namespace
