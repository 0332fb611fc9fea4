// Rows of a matrix, each of which a block holds in registers while it passes over it more than once.
//
// A thread has every kThreads-th vector of its block's row, kKept of them. All are loaded at once, before any of them is
// needed. Their number is a template parameter, because registers can't be indexed at run time. With 0 a row may have
// any length, and is loaded again in each pass.
#pragma once

#include <initializer_list>
#include <limits>
#include <type_traits>

#include "reduce.cuh"
#include "vectors.cuh"

namespace {

// `load` is a function from the first column of a vector to what a thread has of it.
template <int kThreads, int kWidth, int kKept, typename Load>
class Row {
 public:
  using Item = std::invoke_result_t<Load, int>;

  __device__ __forceinline__ Row(int columns, Load load) : columns_(columns), load_(load) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (column(i) < columns_) {
        items_[i] = load_(column(i));
      }
    }
  }

  // Calls `function` with each item, which it may change if it is kept, its first column, and its number among those
  // that are kept.
  template <typename Function>
  __device__ __forceinline__ void each_numbered(Function function) {
    if constexpr (kKept == 0) {
#pragma unroll 4
      for (int at = column(0); at < columns_; at += kThreads * kWidth) {
        Item item = load_(at);
        function(item, at, 0);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        if (column(i) < columns_) {
          function(items_[i], column(i), i);
        }
      }
    }
  }

  template <typename Function>
  __device__ __forceinline__ void each(Function function) {
    each_numbered([&](Item& item, int column, int) { function(item, column); });
  }

 private:
  __device__ __forceinline__ int column(int i) const { return (static_cast<int>(threadIdx.x) + i * kThreads) * kWidth; }

  int columns_;
  Load load_;
  Item items_[kKept > 0 ? kKept : 1];
};

template <int kThreads, int kWidth, int kKept, typename Load>
__device__ __forceinline__ Row<kThreads, kWidth, kKept, Load> keep_row(int columns, Load load) {
  return Row<kThreads, kWidth, kKept, Load>(columns, load);
}

// Whether rows of so many values of T are whole vectors in all of these tensors.
template <typename T>
bool fill_vectors(int64_t columns, std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!is_aligned(tensor)) return false;
  }
  return columns % kFull<T> == 0;
}

// Calls `launch` with the width of vectors and the number of them that a thread keeps, both as constants: vectors of 16
// bytes and 1, 2, 4 or kMost of them, the smallest number that holds a row. If none does, or if rows don't fill vectors,
// nothing is kept.
template <typename T, int kThreads, int kMost, typename Launch>
void launch_fitting(int64_t columns, bool vectors, Launch launch) {
  TORCH_CHECK(columns <= std::numeric_limits<int32_t>::max() / 2, "rows of ", columns, " values are too long");
  const std::integral_constant<int, 0> nothing;
  const std::integral_constant<int, kFull<T>> width;
  const int64_t kept = divide_up(columns, kThreads * kFull<T>);
  if (!vectors) {
    launch(std::integral_constant<int, 1>(), nothing);
  } else if (kept <= 1) {
    launch(width, std::integral_constant<int, 1>());
  } else if (kept <= 2) {
    launch(width, std::integral_constant<int, 2>());
  } else if (kept <= 4) {
    launch(width, std::integral_constant<int, 4>());
  } else if (kept <= kMost) {
    launch(width, std::integral_constant<int, kMost>());
  } else {
    launch(width, nothing);
  }
}

}  // namespace
