// mma.h: tensor cores as in nvcuda::wmma.
//
// All 32 lanes of a warp have to call load_matrix_sync, store_matrix_sync and mma_sync together, from one line, with
// one address and stride. Missing or different lanes and misaligned addresses end the process. None of the three orders
// the memory accesses of different lanes: a load reads before the lanes meet and a store writes after, so that a
// missing __syncwarp is detected. Products are exact; sums are rounded to float at every step, where the hardware
// truncates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/refuse.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/wmma_fragment.h"

#define CUDA_ON_CPU_LINE int line = __builtin_LINE()

namespace nvcuda::wmma {

// Rounds to 10 bits behind the point, ties away from zero.
inline float __float_to_tf32(float x) {
  if (x != x) return cuda_on_cpu::bits_as<float>(0x7fffffffu);
  return cuda_on_cpu::bits_as<float>((cuda_on_cpu::bits_as<std::uint32_t>(x) + 0x1000u) & ~0x1fffu);
}

namespace details {

using cuda_on_cpu::refuse;

// The arguments of a lane that must be equal in all lanes.
struct Meeting {
  const void* memory;
  unsigned ldm;
  int line;
  const char* name;

  static void run(unsigned lanes, void* const* posts) {
    const Meeting* first = static_cast<Meeting*>(posts[lanes ? __builtin_ctz(lanes) : 0]);
    if (lanes != 0xffffffffu) refuse("lanes are missing from an operation of the whole warp", first->name, first->line);
    for (unsigned lane = 1; lane < 32; ++lane) {
      auto* other = static_cast<const Meeting*>(posts[lane]);
      if (other->line != first->line)
        refuse("divergence, lanes of a warp call it from two lines", first->name, first->line);
      if (other->memory != first->memory || other->ldm != first->ldm)
        refuse("lanes of a warp pass different addresses or strides", first->name, first->line);
    }
  }
};

inline void meet(const void* memory, unsigned ldm, const char* name, int line) {
  Meeting post{memory, ldm, line, name};
  cuda_on_cpu::warp_collective(0xffffffffu, &post, &Meeting::run, name, line);
}

// An address has to be a multiple of what a lane holds, which is 32 bytes for operands of half and sums of float; rows
// (or columns) have to lie multiples of 16 bytes apart.
template <class Fragment>
inline void require_aligned(const void* memory, unsigned ldm, const char* name, int line) {
  if (reinterpret_cast<std::uintptr_t>(memory) % sizeof(Fragment::x))
    refuse("misaligned address, no multiple of the fragment's bytes a lane", name, line);
  if (ldm * sizeof(typename Fragment::storage_element_type) % 16)
    refuse("misaligned rows, ldm is not a multiple of 16 bytes", name, line);
}

// The address of a lane's nth element.
template <class Fragment>
inline std::size_t offset(int nth, unsigned ldm, bool by_rows) {
  int place = Fragment::place(static_cast<int>(cuda_on_cpu::lane()), nth);
  int row = place / Fragment::columns, column = place % Fragment::columns;
  auto major = static_cast<unsigned>(by_rows ? row : column), minor = static_cast<unsigned>(by_rows ? column : row);
  return std::size_t{ldm} * major + minor;
}

template <class Fragment>
CUDA_ON_CPU_INLINE void load(
    Fragment& to, const typename Fragment::storage_element_type* memory, unsigned ldm, bool by_rows, int line) {
  require_aligned<Fragment>(memory, ldm, "load_matrix_sync", line);
  for (int nth = 0; nth < Fragment::distinct; ++nth) to.x[nth] = memory[offset<Fragment>(nth, ldm, by_rows)];
  for (int nth = Fragment::distinct; nth < Fragment::num_elements; ++nth) to.x[nth] = to.x[nth - Fragment::distinct];
  meet(memory, ldm, "load_matrix_sync", line);
}

// An element as the multiplier takes it.
template <class T>
struct Factor {
  static float of(T x) { return x.to_float(); }  // __half and __nv_bfloat16
};
template <>
struct Factor<precision::tf32> {
  static float of(float x) { return cuda_on_cpu::bits_as<float>(cuda_on_cpu::bits_as<std::uint32_t>(x) & ~0x1fffu); }
};
template <>
struct Factor<double> {
  static double of(double x) { return x; }
};
template <>
struct Factor<signed char> {
  static long long of(signed char x) { return x; }
};
template <>
struct Factor<unsigned char> {
  static long long of(unsigned char x) { return x; }
};

// An accumulator's element as a number, and the sum as the accumulator takes it.
template <class Number, class T>
inline Number addend(T x) {
  if constexpr (is_small_float<T>)
    return x.to_float();
  else
    return static_cast<Number>(x);
}
template <class To, class Sum>
inline To result(Sum sum, bool saturate) {
  using limits = std::numeric_limits<int>;
  if constexpr (std::is_same_v<To, int>)
    return static_cast<int>(saturate ? std::clamp<Sum>(sum, limits::min(), limits::max()) : sum);
  else if constexpr (is_small_float<To>)
    return To::from_float(sum);
  else
    return To(sum);
}

template <class T, class D, class C>
constexpr bool multiplies = std::is_same_v<T, __half> ? !std::is_same_v<D, int> && !std::is_same_v<C, int>
                            : std::is_same_v<D, C> && (is_byte<T>                    ? std::is_same_v<D, int>
                                                       : std::is_same_v<T, double> ? std::is_same_v<D, double>
                                                                                   : std::is_same_v<D, float>);

// One lane's side of a product: the last lane to come multiplies for all.
template <class A, class B, class C, class D>
struct Product : Meeting {
  const A* a;
  const B* b;
  const C* c;
  D* d;
  bool saturate;

  using Multiplier = Factor<typename A::element_type>;
  using Number = decltype(Multiplier::of({}));
  static constexpr int M = A::rows, K = A::columns, N = B::columns;

  static void run(unsigned lanes, void* const* posts) {
    void* meetings[32];
    for (int lane = 0; lane < 32; ++lane) meetings[lane] = static_cast<Meeting*>(static_cast<Product*>(posts[lane]));
    Meeting::run(lanes, meetings);
    alignas(64) Number left[M * K], right[K * N], sum[M * N];
    for (int lane = 0; lane < 32; ++lane) {
      auto* post = static_cast<Product*>(posts[lane]);
      for (int i = 0; i < A::distinct; ++i) left[A::place(lane, i)] = Multiplier::of(post->a->x[i]);
      for (int i = 0; i < B::distinct; ++i) right[B::place(lane, i)] = Multiplier::of(post->b->x[i]);
      for (int i = 0; i < C::distinct; ++i) sum[C::place(lane, i)] = addend<Number>(post->c->x[i]);
    }
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) sum[m * N + n] += left[m * K + k] * right[k * N + n];
    for (int lane = 0; lane < 32; ++lane) {
      auto* post = static_cast<Product*>(posts[lane]);
      using To = typename D::element_type;
      for (int i = 0; i < D::distinct; ++i) post->d->x[i] = result<To>(sum[D::place(lane, i)], post->saturate);
    }
  }
};

}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout>
inline void fill_fragment(
    fragment<Use, M, N, K, T, Layout>& f, typename fragment<Use, M, N, K, T, Layout>::storage_element_type value) {
  std::fill(std::begin(f.x), std::end(f.x), value);
}

template <class Use, int M, int N, int K, class T, class Layout>
CUDA_ON_CPU_INLINE void load_matrix_sync(
    fragment<Use, M, N, K, T, Layout>& f,
    const typename fragment<Use, M, N, K, T, Layout>::storage_element_type* memory, unsigned ldm, CUDA_ON_CPU_LINE) {
  static_assert(!details::is_accumulator<Use>, "load_matrix_sync of an accumulator needs the layout of its memory");
  details::load(f, memory, ldm, std::is_same_v<Layout, row_major>, line);
}

template <int M, int N, int K, class T>
CUDA_ON_CPU_INLINE void load_matrix_sync(
    fragment<accumulator, M, N, K, T>& f,
    const typename fragment<accumulator, M, N, K, T>::storage_element_type* memory, unsigned ldm, layout_t layout,
    CUDA_ON_CPU_LINE) {
  details::load(f, memory, ldm, layout == mem_row_major, line);
}

template <int M, int N, int K, class T>
CUDA_ON_CPU_INLINE void store_matrix_sync(
    typename fragment<accumulator, M, N, K, T>::storage_element_type* memory,
    const fragment<accumulator, M, N, K, T>& f, unsigned ldm, layout_t layout, CUDA_ON_CPU_LINE) {
  using Fragment = fragment<accumulator, M, N, K, T>;
  details::require_aligned<Fragment>(memory, ldm, "store_matrix_sync", line);
  details::meet(memory, ldm, "store_matrix_sync", line);
  for (int nth = 0; nth < f.num_elements; ++nth)
    memory[details::offset<Fragment>(nth, ldm, layout == mem_row_major)] = f.x[nth];
}

// d = a * b + c; d may be c. `saturate` keeps sums of integers from wrapping around.
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class C, class D>
inline void mma_sync(
    fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
    const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c, bool saturate = false,
    CUDA_ON_CPU_LINE) {
  static_assert(details::multiplies<T, D, C>, "the hardware has no product of these types");
  using A = fragment<matrix_a, M, N, K, T, LayoutA>;
  using B = fragment<matrix_b, M, N, K, T, LayoutB>;
  using Product = details::Product<A, B, fragment<accumulator, M, N, K, C>, fragment<accumulator, M, N, K, D>>;
  Product post{{nullptr, 0, line, "mma_sync"}, &a, &b, &c, &d, saturate};
  cuda_on_cpu::warp_collective(0xffffffffu, &post, &Product::run, "mma_sync", line);
}

}  // namespace nvcuda::wmma

#undef CUDA_ON_CPU_LINE
