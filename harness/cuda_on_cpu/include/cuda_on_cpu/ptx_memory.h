// Loads, stores, atomics and asynchronous copies of inline PTX.
//
// Shared memory lies below 4 GiB, so the 32-bit address of a variable in it is its generic address.
#pragma once

#include <cstring>

#include "cuda_on_cpu/async_copies.h"
#include "cuda_on_cpu/ptx_arithmetic.h"
#include "cuda_on_cpu/ptx_registers.h"
#include "cuda_on_cpu/refuse.h"

namespace cuda_on_cpu::ptx {

constexpr std::uint64_t shared_end = std::uint64_t{1} << 32;

inline char* generic(std::uint64_t address) { return reinterpret_cast<char*>(address); }
inline char* shared(std::uint64_t address) {
  if (address >= shared_end) trap("out of bounds access: an instruction for shared memory has another address");
  return generic(address);
}
template <class T>
inline T shared_address(T address) {
  if (address >= shared_end) trap("out of bounds access: an address that is not in shared memory is converted to one");
  return address;
}

CUDA_ON_CPU_INLINE void require_aligned(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes) trap_misaligned(address, bytes);
}

template <class T, int count>
struct Values {
  T value[count];
};

// A fence, or the half of one that belongs to an acquire or a release.
CUDA_ON_CPU_UNSEEN void fence(bool block_scope, bool acquires, bool releases) {
  race_fence(block_scope, acquires, releases);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// Whether an access is weak, weak and of memory that must not change, or an atomic one of this scope. The elements of a
// vector are accesses of their own.
enum class Strength { weak, read_only, block, device };
constexpr int order_of(Strength strength) { return strength == Strength::block ? __ATOMIC_RELAXED : __ATOMIC_SEQ_CST; }

template <class T, int count, Strength strength>
CUDA_ON_CPU_INLINE Values<T, count> load(const char* address) {
  require_aligned(address, sizeof(T) * count);
  Values<T, count> values;
  if constexpr (strength == Strength::read_only) race_read_only(address, sizeof values);
  if constexpr (strength == Strength::weak || strength == Strength::read_only)
    __builtin_memcpy(&values, address, sizeof values);
  else
    for (int i = 0; i < count; ++i)
      values.value[i] = bits_as<T>(__atomic_load_n(reinterpret_cast<const BitsOf<T>*>(address) + i, order_of(strength)));
  return values;
}
template <class T, int count, Strength strength>
CUDA_ON_CPU_INLINE void store(char* address, Values<T, count> values) {
  require_aligned(address, sizeof(T) * count);
  if constexpr (strength == Strength::weak)
    __builtin_memcpy(address, &values, sizeof values);
  else
    for (int i = 0; i < count; ++i)
      __atomic_store_n(reinterpret_cast<BitsOf<T>*>(address) + i, bits_as<BitsOf<T>>(values.value[i]), order_of(strength));
}

// The memory order of an update tells its scope (race_hooks.cpp).
template <bool block>
constexpr int update_order = block ? __ATOMIC_ACQ_REL : __ATOMIC_SEQ_CST;

template <class T, int count>
inline T* target(char* address) {
  require_aligned(address, sizeof(T) * count);
  return reinterpret_cast<T*>(address);
}
template <bool block, class T>
CUDA_ON_CPU_INLINE T atomic_add(T* at, T value) {
  return atomic_update(at, update_order<block>, __ATOMIC_RELAXED, [value](T old) {
    if constexpr (is_pair<T>) return __hadd2(old, value);
    else if constexpr (is_small<T>) return __hadd(old, value);
    else return static_cast<T>(old + value);
  });
}
#define CUDA_ON_CPU_ATOMIC_PTX(NAME, AGAIN, RESULT)                                                           \
  template <bool block, class T>                                                                              \
  CUDA_ON_CPU_INLINE T atomic_##NAME(T* at, T value) {                                                        \
    return atomic_update(at, update_order<block>, AGAIN, [value]([[maybe_unused]] T old) { return RESULT; }); \
  }
CUDA_ON_CPU_ATOMIC_PTX(min, __ATOMIC_ACQUIRE, ptx::min<T>(old, value))
CUDA_ON_CPU_ATOMIC_PTX(max, __ATOMIC_ACQUIRE, ptx::max<T>(old, value))
CUDA_ON_CPU_ATOMIC_PTX(and, __ATOMIC_ACQUIRE, static_cast<T>(old & value))
CUDA_ON_CPU_ATOMIC_PTX(or, __ATOMIC_ACQUIRE, static_cast<T>(old | value))
CUDA_ON_CPU_ATOMIC_PTX(xor, __ATOMIC_RELAXED, static_cast<T>(old ^ value))
CUDA_ON_CPU_ATOMIC_PTX(inc, __ATOMIC_RELAXED, static_cast<T>(old >= value ? 0 : old + 1))
CUDA_ON_CPU_ATOMIC_PTX(dec, __ATOMIC_RELAXED, static_cast<T>(old == 0 || old > value ? value : old - 1))
#undef CUDA_ON_CPU_ATOMIC_PTX
template <bool block, class T>
CUDA_ON_CPU_INLINE T atomic_exch(T* at, T value) {
  return atomic_exchange(at, update_order<block>, value);
}
template <bool block, class T>
CUDA_ON_CPU_INLINE T atomic_cas(T* at, T compare, T value) {
  return atomic_compare_swap(at, update_order<block>, compare, value);
}

CUDA_ON_CPU_INLINE void copy_async(
    std::uint64_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t copied, int line = __builtin_LINE()) {
  if (bytes != 4 && bytes != 8 && bytes != 16) refuse("a copy has 4, 8 or 16 bytes", "cp.async", line);
  if (copied > bytes) refuse("more bytes are read than written", "cp.async", line);
  require_aligned(shared(to), bytes);
  require_aligned(generic(from), bytes);
  cuda_on_cpu::copy_async(shared(to), generic(from), bytes, copied);
}

}  // namespace cuda_on_cpu::ptx

inline std::size_t __cvta_generic_to_shared(const void* address) {
  return cuda_on_cpu::ptx::shared_address(reinterpret_cast<std::uintptr_t>(address));
}
inline void* __cvta_shared_to_generic(std::size_t address) { return cuda_on_cpu::ptx::shared(address); }
inline std::size_t __cvta_generic_to_global(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
inline void* __cvta_global_to_generic(std::size_t address) { return cuda_on_cpu::ptx::generic(address); }
inline bool __isShared(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) < cuda_on_cpu::ptx::shared_end;
}
