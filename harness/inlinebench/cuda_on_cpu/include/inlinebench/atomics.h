// Atomics on the types that CUDA has them for. Blocks run in parallel, so these are the CPU's own atomic instructions.
//
// Their memory orders tell the race detector about them (race_hooks.cpp). They are inlined so that it gets the caller's
// line.
#pragma once

#include <cstdint>
#include <cstring>

#include "inlinebench/bfloat16.h"
#include "inlinebench/half.h"
#include "inlinebench/qualifiers.h"
#include "inlinebench/vector_types.h"

namespace inlinebench {

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
INLINEBENCH_INLINE T atomic_update(T* address, int order, int again, Change change) {
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
INLINEBENCH_INLINE T atomic_compare_swap(T* address, int order, T compare, T value) {
  __atomic_compare_exchange_n(address, &compare, value, false, order, __ATOMIC_ACQUIRE);
  return compare;
}

}  // namespace inlinebench

// Each in the three scopes that CUDA has: device, block and system.
#define INLINEBENCH_SCOPED(T, NAME, ORDER, BODY)       \
  INLINEBENCH_INLINE T NAME(T* address, T value) {     \
    constexpr int order = ORDER;                       \
    BODY                                               \
  }
#define INLINEBENCH_ATOMIC(T, NAME, BODY)                          \
  INLINEBENCH_SCOPED(T, NAME, __ATOMIC_SEQ_CST, BODY)              \
  INLINEBENCH_SCOPED(T, NAME##_block, __ATOMIC_ACQ_REL, BODY)      \
  INLINEBENCH_SCOPED(T, NAME##_system, __ATOMIC_SEQ_CST, BODY)
// NEW is an expression of `old` and `value`.
#define INLINEBENCH_ATOMIC_UPDATE(T, NAME, AGAIN, NEW) \
  INLINEBENCH_ATOMIC(T, NAME, return inlinebench::atomic_update(address, order, AGAIN, [value](T old) { return NEW; });)
#define INLINEBENCH_ATOMIC_COMPARE(T)                                                  \
  INLINEBENCH_INLINE T atomicCAS(T* address, T compare, T value) {                     \
    return inlinebench::atomic_compare_swap(address, __ATOMIC_SEQ_CST, compare, value); \
  }                                                                                    \
  INLINEBENCH_INLINE T atomicCAS_block(T* address, T compare, T value) {               \
    return inlinebench::atomic_compare_swap(address, __ATOMIC_ACQ_REL, compare, value); \
  }                                                                                    \
  INLINEBENCH_INLINE T atomicCAS_system(T* address, T compare, T value) { return atomicCAS(address, compare, value); }

#define INLINEBENCH_ATOMIC_INTEGER(T)                                                         \
  INLINEBENCH_ATOMIC(T, atomicAdd, return __atomic_fetch_add(address, value, order);)         \
  INLINEBENCH_ATOMIC(T, atomicExch, return __atomic_exchange_n(address, value, order);)       \
  INLINEBENCH_ATOMIC(T, atomicAnd, return __atomic_fetch_and(address, value, order);)         \
  INLINEBENCH_ATOMIC(T, atomicOr, return __atomic_fetch_or(address, value, order);)           \
  INLINEBENCH_ATOMIC(T, atomicXor, return __atomic_fetch_xor(address, value, order);)         \
  INLINEBENCH_ATOMIC_UPDATE(T, atomicMin, __ATOMIC_ACQUIRE, old < value ? old : value)        \
  INLINEBENCH_ATOMIC_UPDATE(T, atomicMax, __ATOMIC_ACQUIRE, old < value ? value : old)        \
  INLINEBENCH_ATOMIC_COMPARE(T)
INLINEBENCH_ATOMIC_INTEGER(int)
INLINEBENCH_ATOMIC_INTEGER(unsigned)
INLINEBENCH_ATOMIC_INTEGER(unsigned long long)
#undef INLINEBENCH_ATOMIC_INTEGER
INLINEBENCH_ATOMIC_COMPARE(unsigned short)

INLINEBENCH_ATOMIC(int, atomicSub, return __atomic_fetch_sub(address, value, order);)
INLINEBENCH_ATOMIC(unsigned, atomicSub, return __atomic_fetch_sub(address, value, order);)
INLINEBENCH_ATOMIC_UPDATE(unsigned, atomicInc, __ATOMIC_RELAXED, old >= value ? 0 : old + 1)
INLINEBENCH_ATOMIC_UPDATE(unsigned, atomicDec, __ATOMIC_RELAXED, old == 0 || old > value ? value : old - 1)
INLINEBENCH_ATOMIC_UPDATE(long long, atomicMin, __ATOMIC_ACQUIRE, old < value ? old : value)
INLINEBENCH_ATOMIC_UPDATE(long long, atomicMax, __ATOMIC_ACQUIRE, old < value ? value : old)
INLINEBENCH_ATOMIC_UPDATE(float, atomicExch, __ATOMIC_RELAXED, (static_cast<void>(old), value))
INLINEBENCH_ATOMIC_UPDATE(float, atomicAdd, __ATOMIC_RELAXED, old + value)
INLINEBENCH_ATOMIC_UPDATE(double, atomicAdd, __ATOMIC_RELAXED, old + value)
INLINEBENCH_ATOMIC_UPDATE(__half, atomicAdd, __ATOMIC_RELAXED, __hadd(old, value))
INLINEBENCH_ATOMIC_UPDATE(__nv_bfloat16, atomicAdd, __ATOMIC_RELAXED, __hadd(old, value))
INLINEBENCH_ATOMIC_UPDATE(__half2, atomicAdd, __ATOMIC_RELAXED, __hadd2(old, value))
INLINEBENCH_ATOMIC_UPDATE(__nv_bfloat162, atomicAdd, __ATOMIC_RELAXED, __hadd2(old, value))
#undef INLINEBENCH_ATOMIC_UPDATE
#undef INLINEBENCH_ATOMIC_COMPARE
#undef INLINEBENCH_ATOMIC
#undef INLINEBENCH_SCOPED

// Vectors: each element by itself, as on the hardware.
INLINEBENCH_INLINE float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
INLINEBENCH_INLINE float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
          atomicAdd(&address->w, value.w)};
}
