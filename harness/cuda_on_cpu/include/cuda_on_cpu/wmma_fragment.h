// nvcuda::wmma's fragments: the elements of a matrix that each lane holds.
//
// CUDA does not specify which lane holds which element, and code must not depend on it. Elements of 16 x 16
// accumulators are in the same lanes as on GPUs since Turing, because code that relies on that works there; all others
// are distributed in order. Numbers of elements are those of CUDA's header, which has some elements in several lanes.
#pragma once

#include <type_traits>

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/poison.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

namespace details {

constexpr int lanes = 32;

template <class Use>
constexpr bool is_accumulator = std::is_same_v<Use, accumulator>;
template <class T>
constexpr bool is_small_float = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
template <class T>
constexpr bool is_byte = std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>;

// Whether the hardware has fragments of these sizes for this type.
template <class Use, int M, int N, int K, class T>
constexpr bool exists() {
  bool sixteen = K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32));
  bool tf32 = M == 16 && N == 16 && K == 8, with_double = M == 8 && N == 8 && K == 4 && std::is_same_v<T, double>;
  if (is_accumulator<Use>)
    return (sixteen && (std::is_same_v<T, __half> || std::is_same_v<T, float> || std::is_same_v<T, int>)) ||
           (tf32 && std::is_same_v<T, float>) || with_double;
  return (sixteen && (is_small_float<T> || is_byte<T>)) || (tf32 && std::is_same_v<T, precision::tf32>) || with_double;
}

// The index of the lane's nth element in the matrix, in row-major order.
template <class Use, int Rows, int Columns>
constexpr int place(int lane, int nth) {
  if (is_accumulator<Use> && Rows == 16 && Columns == 16)
    return (lane / 4 + (nth & 2) * 4) * 16 + lane % 4 * 2 + (nth & 1) + (nth & 4) * 2;
  return (nth * lanes + lane) % (Rows * Columns);
}

}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout = void>
class alignas(8) fragment {
  static_assert(details::exists<Use, M, N, K, T>(), "the hardware has no such fragment");
  static_assert(details::is_accumulator<Use> ? std::is_void_v<Layout>
                                             : std::is_same_v<Layout, row_major> || std::is_same_v<Layout, col_major>,
                "matrix_a and matrix_b need a layout, an accumulator has none");

 public:
  using element_type = T;
  using storage_element_type = std::conditional_t<std::is_same_v<T, precision::tf32>, float, T>;

  // For the CPU's own headers: the sizes, and which element lies where.
  static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int columns = std::is_same_v<Use, matrix_a> ? K : N;
  static constexpr int distinct = rows * columns / details::lanes;  // elements of a lane, without copies
  static constexpr int place(int lane, int nth) { return details::place<Use, rows, columns>(lane, nth); }

  enum { num_elements = !details::is_accumulator<Use> && std::is_same_v<T, __half> ? 16 : distinct };
  enum { num_storage_elements = num_elements };

  fragment() { cuda_on_cpu::poison(x, sizeof x); }

  storage_element_type x[num_elements];
};

}  // namespace nvcuda::wmma
