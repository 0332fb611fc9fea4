// Atomics on the types that CUDA has them for. Blocks run in parallel, so these are the CPU's own atomic instructions.
//
// Their memory orders tell the race detector about them (race_hooks.cpp). They are inlined so that it gets the caller's
// line.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/vector_types.h"

namespace cuda_on_cpu {

template <std::size_t size>
struct Word;
template <>
struct Word<1> { using type = std::uint8_t; };
template <>
struct Word<2> { using type = std::uint16_t; };
template <>
struct Word<4> { using type = std::uint32_t; };
template <>
struct Word<8> { using type = std::uint64_t; };

// Replaces *address by change(*address); gives the old value. `again` is the order of a failure: relaxed if another
// such change would add to the first one.
template <class T, class Change>
CUDA_ON_CPU_INLINE T atomic_update(T* address, int order, int again, Change change) {
  using Bits = typename Word<sizeof(T)>::type;
  auto* word = reinterpret_cast<Bits*>(address);
  Bits old_bits = __atomic_load_n(word, __ATOMIC_ACQUIRE), new_bits;
  T old_value, new_value;
  do {
    __builtin_memcpy(&old_value, &old_bits, sizeof(T));
    new_value = change(old_value);
    __builtin_memcpy(&new_bits, &new_value, sizeof(T));
  } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, false, order, again));
  return old_value;
}

template <class T>
CUDA_ON_CPU_INLINE T atomic_exchange(T* address, int order, T value) {
  using Bits = typename Word<sizeof(T)>::type;
  Bits bits;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = __atomic_exchange_n(reinterpret_cast<Bits*>(address), bits, order);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
CUDA_ON_CPU_INLINE T atomic_compare_swap(T* address, int order, T compare, T value) {
  __atomic_compare_exchange_n(address, &compare, value, false, order, __ATOMIC_ACQUIRE);
  return compare;
}

}  // namespace cuda_on_cpu

// Each in the three scopes that CUDA has: device, block and system.
#define CUDA_ON_CPU_SCOPED(T, NAME, ORDER, BODY)       \
  CUDA_ON_CPU_INLINE T NAME(T* address, T value) {     \
    constexpr int order = ORDER;                       \
    BODY                                               \
  }
#define CUDA_ON_CPU_ATOMIC(T, NAME, BODY)                          \
  CUDA_ON_CPU_SCOPED(T, NAME, __ATOMIC_SEQ_CST, BODY)              \
  CUDA_ON_CPU_SCOPED(T, NAME##_block, __ATOMIC_ACQ_REL, BODY)      \
  CUDA_ON_CPU_SCOPED(T, NAME##_system, __ATOMIC_SEQ_CST, BODY)
// NEW is an expression of `old` and `value`.
#define CUDA_ON_CPU_ATOMIC_UPDATE(T, NAME, AGAIN, NEW) \
  CUDA_ON_CPU_ATOMIC(T, NAME, return cuda_on_cpu::atomic_update(address, order, AGAIN, [value](T old) { return NEW; });)
#define CUDA_ON_CPU_ATOMIC_COMPARE(T)                                                  \
  CUDA_ON_CPU_INLINE T atomicCAS(T* address, T compare, T value) {                     \
    return cuda_on_cpu::atomic_compare_swap(address, __ATOMIC_SEQ_CST, compare, value); \
  }                                                                                    \
  CUDA_ON_CPU_INLINE T atomicCAS_block(T* address, T compare, T value) {               \
    return cuda_on_cpu::atomic_compare_swap(address, __ATOMIC_ACQ_REL, compare, value); \
  }                                                                                    \
  CUDA_ON_CPU_INLINE T atomicCAS_system(T* address, T compare, T value) { return atomicCAS(address, compare, value); }

#define CUDA_ON_CPU_ATOMIC_INTEGER(T)                                                         \
  CUDA_ON_CPU_ATOMIC(T, atomicAdd, return __atomic_fetch_add(address, value, order);)         \
  CUDA_ON_CPU_ATOMIC(T, atomicExch, return __atomic_exchange_n(address, value, order);)       \
  CUDA_ON_CPU_ATOMIC(T, atomicAnd, return __atomic_fetch_and(address, value, order);)         \
  CUDA_ON_CPU_ATOMIC(T, atomicOr, return __atomic_fetch_or(address, value, order);)           \
  CUDA_ON_CPU_ATOMIC(T, atomicXor, return __atomic_fetch_xor(address, value, order);)         \
  CUDA_ON_CPU_ATOMIC_UPDATE(T, atomicMin, __ATOMIC_ACQUIRE, old < value ? old : value)        \
  CUDA_ON_CPU_ATOMIC_UPDATE(T, atomicMax, __ATOMIC_ACQUIRE, old < value ? value : old)        \
  CUDA_ON_CPU_ATOMIC_COMPARE(T)
CUDA_ON_CPU_ATOMIC_INTEGER(int)
CUDA_ON_CPU_ATOMIC_INTEGER(unsigned)
CUDA_ON_CPU_ATOMIC_INTEGER(unsigned long long)
#undef CUDA_ON_CPU_ATOMIC_INTEGER
CUDA_ON_CPU_ATOMIC_COMPARE(unsigned short)

CUDA_ON_CPU_ATOMIC(int, atomicSub, return __atomic_fetch_sub(address, value, order);)
CUDA_ON_CPU_ATOMIC(unsigned, atomicSub, return __atomic_fetch_sub(address, value, order);)
CUDA_ON_CPU_ATOMIC_UPDATE(unsigned, atomicInc, __ATOMIC_RELAXED, old >= value ? 0 : old + 1)
CUDA_ON_CPU_ATOMIC_UPDATE(unsigned, atomicDec, __ATOMIC_RELAXED, old == 0 || old > value ? value : old - 1)
CUDA_ON_CPU_ATOMIC_UPDATE(long long, atomicMin, __ATOMIC_ACQUIRE, old < value ? old : value)
CUDA_ON_CPU_ATOMIC_UPDATE(long long, atomicMax, __ATOMIC_ACQUIRE, old < value ? value : old)
CUDA_ON_CPU_ATOMIC(float, atomicExch, return cuda_on_cpu::atomic_exchange(address, order, value);)
CUDA_ON_CPU_ATOMIC_UPDATE(float, atomicAdd, __ATOMIC_RELAXED, old + value)
CUDA_ON_CPU_ATOMIC_UPDATE(double, atomicAdd, __ATOMIC_RELAXED, old + value)
CUDA_ON_CPU_ATOMIC_UPDATE(__half, atomicAdd, __ATOMIC_RELAXED, __hadd(old, value))
CUDA_ON_CPU_ATOMIC_UPDATE(__nv_bfloat16, atomicAdd, __ATOMIC_RELAXED, __hadd(old, value))
CUDA_ON_CPU_ATOMIC_UPDATE(__half2, atomicAdd, __ATOMIC_RELAXED, __hadd2(old, value))
CUDA_ON_CPU_ATOMIC_UPDATE(__nv_bfloat162, atomicAdd, __ATOMIC_RELAXED, __hadd2(old, value))
#undef CUDA_ON_CPU_ATOMIC_UPDATE
#undef CUDA_ON_CPU_ATOMIC_COMPARE
#undef CUDA_ON_CPU_ATOMIC
#undef CUDA_ON_CPU_SCOPED

// Vectors: each element by itself, as on the hardware.
CUDA_ON_CPU_INLINE float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
CUDA_ON_CPU_INLINE float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
          atomicAdd(&address->w, value.w)};
}
