// CUB's types and operators, and libcu++'s operators that replace some of them in CUDA 13.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/qualifiers.h"

#define CUB_VERSION 300001
#define CUB_MAJOR_VERSION (CUB_VERSION / 100000)
#define CUB_MINOR_VERSION (CUB_VERSION / 100 % 1000)
#define CUB_SUBMINOR_VERSION (CUB_VERSION % 100)
#define CCCL_VERSION 3000001

namespace cuda {

template <class T = void>
struct maximum {
  constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T, class U>
  constexpr std::common_type_t<T, U> operator()(const T& a, const U& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T, class U>
  constexpr std::common_type_t<T, U> operator()(const T& a, const U& b) const { return b < a ? b : a; }
};

namespace std {

template <class T = void>
struct plus {
  constexpr T operator()(const T& a, const T& b) const { return a + b; }
};
template <>
struct plus<void> {
  template <class T, class U>
  constexpr auto operator()(const T& a, const U& b) const { return a + b; }
};

}  // namespace std
}  // namespace cuda

namespace cub {

struct NullType {};

template <class Key_, class Value_>
struct KeyValuePair {
  using Key = Key_;
  using Value = Value_;
  Key key;
  Value value;
  KeyValuePair() {}
  KeyValuePair(const Key& key, const Value& value) : key(key), value(value) {}
  bool operator!=(const KeyValuePair& other) const { return value != other.value || key != other.key; }
};

template <class T>
struct DoubleBuffer {
  T* d_buffers[2]{};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

// CUDA 12's names.
using Sum = ::cuda::std::plus<>;
using Max = ::cuda::maximum<>;
using Min = ::cuda::minimum<>;

// The key is the offset of the value; the smaller one of equal values wins.
struct ArgMax {
  template <class Offset, class T>
  KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a, const KeyValuePair<Offset, T>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class Offset, class T>
  KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a, const KeyValuePair<Offset, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

}  // namespace cub

namespace cuda_on_cpu {

template <class T>
constexpr bool is_small_float = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// The largest finite number.
template <class T>
inline T largest() {
  if constexpr (std::is_same_v<T, __half>)
    return __half::from_float(65504.0f);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __nv_bfloat16::from_float(3.38953139e38f);
  else
    return std::numeric_limits<T>::max();
}
template <class T>
inline T lowest() {
  if constexpr (is_small_float<T>)
    return T::from_float(-largest<T>().to_float());
  else
    return std::numeric_limits<T>::lowest();
}

}  // namespace cuda_on_cpu
