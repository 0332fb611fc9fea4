// Atomics on the types that CUDA has them for. Blocks run in parallel, so these are the CPU's own atomic instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include "inlinebench/bfloat16.h"
#include "inlinebench/half.h"
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

// Replaces *address by change(*address); gives the old value.
template <class T, class Change>
inline T atomic_update(T* address, Change change) {
  using Bits = typename Word<sizeof(T)>::type;
  auto* word = reinterpret_cast<Bits*>(address);
  Bits old_bits = __atomic_load_n(word, __ATOMIC_SEQ_CST), new_bits;
  T old_value, new_value;
  do {
    std::memcpy(&old_value, &old_bits, sizeof(T));
    new_value = change(old_value);
    std::memcpy(&new_bits, &new_value, sizeof(T));
  } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return old_value;
}

template <class T>
inline T atomic_exchange(T* address, T value) {
  return atomic_update(address, [value](T) { return value; });
}

template <class T>
inline T atomic_compare_swap(T* address, T compare, T value) {
  __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return compare;
}

}  // namespace inlinebench

// Each in the three scopes that CUDA has: device, block and system.
#define INLINEBENCH_ATOMIC(T, NAME, BODY)                             \
  inline T NAME(T* address, T value) { BODY }                         \
  inline T NAME##_block(T* address, T value) { BODY }                 \
  inline T NAME##_system(T* address, T value) { BODY }

#define INLINEBENCH_ATOMIC_INTEGER(T)                                                                                     \
  INLINEBENCH_ATOMIC(T, atomicAdd, return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);)                          \
  INLINEBENCH_ATOMIC(T, atomicExch, return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);)                        \
  INLINEBENCH_ATOMIC(T, atomicAnd, return __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST);)                          \
  INLINEBENCH_ATOMIC(T, atomicOr, return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);)                            \
  INLINEBENCH_ATOMIC(T, atomicXor, return __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST);)                          \
  INLINEBENCH_ATOMIC(T, atomicMin,                                                                                        \
                     return inlinebench::atomic_update(address, [value](T old) { return old < value ? old : value; });)   \
  INLINEBENCH_ATOMIC(T, atomicMax,                                                                                        \
                     return inlinebench::atomic_update(address, [value](T old) { return old < value ? value : old; });)   \
  inline T atomicCAS(T* address, T compare, T value) { return inlinebench::atomic_compare_swap(address, compare, value); } \
  inline T atomicCAS_block(T* address, T compare, T value) { return atomicCAS(address, compare, value); }                 \
  inline T atomicCAS_system(T* address, T compare, T value) { return atomicCAS(address, compare, value); }
INLINEBENCH_ATOMIC_INTEGER(int)
INLINEBENCH_ATOMIC_INTEGER(unsigned)
INLINEBENCH_ATOMIC_INTEGER(unsigned long long)
#undef INLINEBENCH_ATOMIC_INTEGER

INLINEBENCH_ATOMIC(int, atomicSub, return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST);)
INLINEBENCH_ATOMIC(unsigned, atomicSub, return __atomic_fetch_sub(address, value, __ATOMIC_SEQ_CST);)
INLINEBENCH_ATOMIC(unsigned, atomicInc,
                   return inlinebench::atomic_update(address, [value](unsigned old) { return old >= value ? 0 : old + 1; });)
INLINEBENCH_ATOMIC(unsigned, atomicDec, return inlinebench::atomic_update(address, [value](unsigned old) {
                     return old == 0 || old > value ? value : old - 1;
                   });)
INLINEBENCH_ATOMIC(long long, atomicMin,
                   return inlinebench::atomic_update(address, [value](long long old) { return old < value ? old : value; });)
INLINEBENCH_ATOMIC(long long, atomicMax,
                   return inlinebench::atomic_update(address, [value](long long old) { return old < value ? value : old; });)
INLINEBENCH_ATOMIC(float, atomicExch, return inlinebench::atomic_exchange(address, value);)
inline unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short value) {
  return inlinebench::atomic_compare_swap(address, compare, value);
}

#define INLINEBENCH_ATOMIC_ADD(T, SUM) \
  INLINEBENCH_ATOMIC(T, atomicAdd, return inlinebench::atomic_update(address, [value](T old) { return SUM; });)
INLINEBENCH_ATOMIC_ADD(float, old + value)
INLINEBENCH_ATOMIC_ADD(double, old + value)
INLINEBENCH_ATOMIC_ADD(__half, __hadd(old, value))
INLINEBENCH_ATOMIC_ADD(__nv_bfloat16, __hadd(old, value))
INLINEBENCH_ATOMIC_ADD(__half2, __hadd2(old, value))
INLINEBENCH_ATOMIC_ADD(__nv_bfloat162, __hadd2(old, value))
#undef INLINEBENCH_ATOMIC_ADD
#undef INLINEBENCH_ATOMIC

// Vectors: each element by itself, as on the hardware.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
          atomicAdd(&address->w, value.w)};
}
