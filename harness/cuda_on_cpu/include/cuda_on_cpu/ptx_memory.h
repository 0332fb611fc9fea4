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

inline void require_aligned(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes) trap("misaligned address");
}

template <class T, int count>
struct Values {
  T value[count];
};

// `strong` accesses of one value are atomic.
template <class T, int count, bool strong>
CUDA_ON_CPU_INLINE Values<T, count> load(const char* address) {
  require_aligned(address, sizeof(T) * count);
  Values<T, count> values;
  if constexpr (strong && count == 1)
    values.value[0] = bits_as<T>(__atomic_load_n(reinterpret_cast<const BitsOf<T>*>(address), __ATOMIC_SEQ_CST));
  else
    __builtin_memcpy(&values, address, sizeof values);
  return values;
}
template <class T, int count, bool strong>
CUDA_ON_CPU_INLINE void store(char* address, Values<T, count> values) {
  require_aligned(address, sizeof(T) * count);
  if constexpr (strong && count == 1)
    __atomic_store_n(reinterpret_cast<BitsOf<T>*>(address), bits_as<BitsOf<T>>(values.value[0]), __ATOMIC_SEQ_CST);
  else
    __builtin_memcpy(address, &values, sizeof values);
}

template <class T, int count>
inline T* target(char* address) {
  require_aligned(address, sizeof(T) * count);
  return reinterpret_cast<T*>(address);
}
template <class T>
CUDA_ON_CPU_INLINE T atomic_add(T* at, T value) {
  return atomic_update(at, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED, [value](T old) {
    if constexpr (is_pair<T>) return __hadd2(old, value);
    else if constexpr (is_small<T>) return __hadd(old, value);
    else return static_cast<T>(old + value);
  });
}
#define CUDA_ON_CPU_ATOMIC_PTX(NAME, AGAIN, RESULT)                                               \
  template <class T>                                                                              \
  CUDA_ON_CPU_INLINE T atomic_##NAME(T* at, T value) {                                            \
    return atomic_update(at, __ATOMIC_SEQ_CST, AGAIN, [value]([[maybe_unused]] T old) { return RESULT; }); \
  }
CUDA_ON_CPU_ATOMIC_PTX(min, __ATOMIC_ACQUIRE, ptx::min<T>(old, value))
CUDA_ON_CPU_ATOMIC_PTX(max, __ATOMIC_ACQUIRE, ptx::max<T>(old, value))
CUDA_ON_CPU_ATOMIC_PTX(and, __ATOMIC_ACQUIRE, static_cast<T>(old & value))
CUDA_ON_CPU_ATOMIC_PTX(or, __ATOMIC_ACQUIRE, static_cast<T>(old | value))
CUDA_ON_CPU_ATOMIC_PTX(xor, __ATOMIC_RELAXED, static_cast<T>(old ^ value))
CUDA_ON_CPU_ATOMIC_PTX(inc, __ATOMIC_RELAXED, static_cast<T>(old >= value ? 0 : old + 1))
CUDA_ON_CPU_ATOMIC_PTX(dec, __ATOMIC_RELAXED, static_cast<T>(old == 0 || old > value ? value : old - 1))
CUDA_ON_CPU_ATOMIC_PTX(exch, __ATOMIC_RELAXED, value)
#undef CUDA_ON_CPU_ATOMIC_PTX
template <class T>
CUDA_ON_CPU_INLINE T atomic_cas(T* at, T compare, T value) {
  return atomic_compare_swap(at, __ATOMIC_SEQ_CST, compare, value);
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
