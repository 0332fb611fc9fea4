// cuda::atomic_ref and cuda::atomic of libcu++. Their scopes and orders reach the race detector as those of PTX do: an
// acquire is a relaxed access and a fence after it, a release a fence and a relaxed access.
#pragma once

#include <atomic>
#include <type_traits>

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/ptx_memory.h"

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

namespace std {
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;
}  // namespace std
using namespace cuda::std;

}  // namespace cuda

namespace cuda_on_cpu::libcuxx {

using Order = ::std::memory_order;
constexpr Order strongest = ::std::memory_order_seq_cst;

constexpr bool releases(Order order) { return order >= ::std::memory_order_release; }
constexpr bool acquires(Order order) {
  return order != ::std::memory_order_relaxed && order != ::std::memory_order_release;
}
// The order of a failed compare-and-swap.
constexpr Order without_release(Order order) {
  return order == ::std::memory_order_acq_rel   ? ::std::memory_order_acquire
         : order == ::std::memory_order_release ? ::std::memory_order_relaxed
                                                : order;
}

// `Place` has data(), the address.
template <class Place, class T, bool block>
class Operations {
  using Bits = typename Word<sizeof(T)>::type;
  static constexpr int access_order = block ? __ATOMIC_RELAXED : __ATOMIC_SEQ_CST;
  static constexpr int order_of_update = ptx::update_order<block>;

  CUDA_ON_CPU_INLINE T* data() const { return static_cast<const Place*>(this)->data(); }
  CUDA_ON_CPU_INLINE Bits* bits() const { return reinterpret_cast<Bits*>(data()); }
  static CUDA_ON_CPU_INLINE void before(Order order) {
    if (releases(order)) ptx::fence(block, false, true);
  }
  static CUDA_ON_CPU_INLINE void after(Order order) {
    if (acquires(order)) ptx::fence(block, true, false);
  }
  template <class Change>
  CUDA_ON_CPU_INLINE T update(Order order, int again, Change change) const {
    before(order);
    T old = atomic_update(data(), order_of_update, again, change);
    after(order);
    return old;
  }

 public:
  using value_type = T;

  CUDA_ON_CPU_INLINE T load(Order order = strongest) const {
    if (order == strongest) before(order);
    T value = bits_as<T>(__atomic_load_n(bits(), access_order));
    after(order);
    return value;
  }
  CUDA_ON_CPU_INLINE void store(T value, Order order = strongest) const {
    before(order);
    __atomic_store_n(bits(), bits_as<Bits>(value), access_order);
  }
  CUDA_ON_CPU_INLINE T exchange(T value, Order order = strongest) const {
    before(order);
    T old = atomic_exchange(data(), order_of_update, value);
    after(order);
    return old;
  }
  CUDA_ON_CPU_INLINE bool compare_exchange_strong(T& expected, T value, Order success, Order failure) const {
    before(success);
    T found = atomic_compare_swap(bits(), order_of_update, bits_as<Bits>(expected), bits_as<Bits>(value));
    bool same = bits_as<Bits>(found) == bits_as<Bits>(expected);
    after(same ? success : failure);
    expected = found;
    return same;
  }
  CUDA_ON_CPU_INLINE bool compare_exchange_strong(T& expected, T value, Order order = strongest) const {
    return compare_exchange_strong(expected, value, order, without_release(order));
  }
  CUDA_ON_CPU_INLINE bool compare_exchange_weak(T& expected, T value, Order success, Order failure) const {
    return compare_exchange_strong(expected, value, success, failure);
  }
  CUDA_ON_CPU_INLINE bool compare_exchange_weak(T& expected, T value, Order order = strongest) const {
    return compare_exchange_strong(expected, value, order);
  }

#define CUDA_ON_CPU_FETCH(NAME, AGAIN, NEW)                                          \
  CUDA_ON_CPU_INLINE T fetch_##NAME(T value, Order order = strongest) const {        \
    return update(order, AGAIN, [value](T old) { return static_cast<T>(NEW); });     \
  }
  CUDA_ON_CPU_FETCH(add, __ATOMIC_RELAXED, old + value)
  CUDA_ON_CPU_FETCH(sub, __ATOMIC_RELAXED, old - value)
  CUDA_ON_CPU_FETCH(and, __ATOMIC_ACQUIRE, old & value)
  CUDA_ON_CPU_FETCH(or, __ATOMIC_ACQUIRE, old | value)
  CUDA_ON_CPU_FETCH(xor, __ATOMIC_RELAXED, old ^ value)
  CUDA_ON_CPU_FETCH(min, __ATOMIC_ACQUIRE, value < old ? value : old)
  CUDA_ON_CPU_FETCH(max, __ATOMIC_ACQUIRE, old < value ? value : old)
#undef CUDA_ON_CPU_FETCH
  CUDA_ON_CPU_INLINE T operator++() const { return fetch_add(1) + 1; }
  CUDA_ON_CPU_INLINE T operator--() const { return fetch_sub(1) - 1; }
  CUDA_ON_CPU_INLINE T operator++(int) const { return fetch_add(1); }
  CUDA_ON_CPU_INLINE T operator--(int) const { return fetch_sub(1); }
  CUDA_ON_CPU_INLINE T operator+=(T value) const { return fetch_add(value) + value; }
  CUDA_ON_CPU_INLINE T operator-=(T value) const { return fetch_sub(value) - value; }
  CUDA_ON_CPU_INLINE T operator&=(T value) const { return fetch_and(value) & value; }
  CUDA_ON_CPU_INLINE T operator|=(T value) const { return fetch_or(value) | value; }
  CUDA_ON_CPU_INLINE T operator^=(T value) const { return fetch_xor(value) ^ value; }
  CUDA_ON_CPU_INLINE operator T() const { return load(); }
  CUDA_ON_CPU_INLINE bool is_lock_free() const { return true; }

  void wait(T, Order = strongest) const { trap("unsupported on the CPU (run with a CUDA device): waiting for an atomic"); }
  void notify_one() const {}
  void notify_all() const {}
};

constexpr bool is_of_block(::cuda::thread_scope scope) { return scope >= ::cuda::thread_scope_block; }

}  // namespace cuda_on_cpu::libcuxx

namespace cuda {

template <class T, thread_scope scope = thread_scope_system>
class atomic_ref
    : public cuda_on_cpu::libcuxx::Operations<atomic_ref<T, scope>, T, cuda_on_cpu::libcuxx::is_of_block(scope)> {
 public:
  explicit atomic_ref(T& target) : target_(&target) {}
  atomic_ref(const atomic_ref&) = default;
  CUDA_ON_CPU_INLINE T operator=(T value) const { return this->store(value), value; }
  CUDA_ON_CPU_INLINE T* data() const { return target_; }

 private:
  T* target_;
};

template <class T, thread_scope scope = thread_scope_system>
class atomic : public cuda_on_cpu::libcuxx::Operations<atomic<T, scope>, T, cuda_on_cpu::libcuxx::is_of_block(scope)> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  CUDA_ON_CPU_INLINE T operator=(T value) { return this->store(value), value; }
  CUDA_ON_CPU_INLINE T* data() const { return const_cast<T*>(&value_); }

 private:
  T value_;
};

CUDA_ON_CPU_INLINE void atomic_thread_fence(std::memory_order order, thread_scope scope = thread_scope_system) {
  using namespace cuda_on_cpu;
  if (order != ::std::memory_order_relaxed)
    ptx::fence(libcuxx::is_of_block(scope), libcuxx::acquires(order), libcuxx::releases(order));
}

}  // namespace cuda
