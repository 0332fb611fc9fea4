// Atomics on torch's scalar types: CUDA's own, and the rest by compare and swap.
#pragma once

#include <type_traits>

#include "cuda_on_cpu/atomics.h"

template <class T>
inline T gpuAtomicAdd(T* address, T value) {
  return cuda_on_cpu::atomic_update(address, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
inline void gpuAtomicAddNoReturn(T* address, T value) { gpuAtomicAdd(address, value); }
template <class T>
inline T gpuAtomicMul(T* address, T value) {
  return cuda_on_cpu::atomic_update(address, [value](T old) { return static_cast<T>(old * value); });
}
template <class T>
inline T gpuAtomicMax(T* address, T value) {
  return cuda_on_cpu::atomic_update(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
inline T gpuAtomicMin(T* address, T value) {
  return cuda_on_cpu::atomic_update(address, [value](T old) { return value < old ? value : old; });
}
