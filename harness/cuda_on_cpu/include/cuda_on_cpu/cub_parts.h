// What CUB's collectives are made of: groups of threads, their temporary storage, private memory, folds and orders.
//
// Threads of a block exchange data through TempStorage, by plain accesses and CUDA's barriers, so that the race detector
// finds a TempStorage that is used again without a barrier. So do the sorts of a warp. Its reductions and scans exchange
// values as CUB does, by shuffles, which do not touch TempStorage. What one thread computes for all, it computes in
// private memory.
// Functions that access TempStorage are inlined, so that accesses have the caller's line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cuda_on_cpu/cub_types.h"
#include "cuda_on_cpu/poison.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/shared.h"
#include "cuda_on_cpu/sync.h"

namespace cuda_on_cpu {

constexpr std::size_t larger(std::size_t a, std::size_t b) { return a < b ? b : a; }

// Trivial, so that it can be a member of a union.
template <std::size_t size, std::size_t alignment>
struct alignas(alignment) TempStorage {
  unsigned char bytes[size ? size : 1];

  template <class T>
  CUDA_ON_CPU_INLINE T* as() { return reinterpret_cast<T*>(bytes); }
};
template <class T, std::size_t count>
using StorageOf = TempStorage<count * sizeof(T), alignof(T)>;

template <int X, int Y, int Z>
struct BlockGroup {
  static constexpr int threads = X * Y * Z;
  int line;

  CUDA_ON_CPU_INLINE static int rank() { return static_cast<int>((threadIdx.z * Y + threadIdx.y) * X + threadIdx.x); }
  CUDA_ON_CPU_INLINE void sync() const { __syncthreads(line); }
};

// One lane's side of an exchange in which each lane gets the values of all lanes that take part.
template <class T>
struct Gather {
  T value;
  T* all;

  static void run(unsigned lanes, void* const* posts) {
    for (unsigned to = lanes; to; to &= to - 1) {
      T* all = static_cast<Gather*>(posts[__builtin_ctz(to)])->all;
      for (unsigned from = lanes; from; from &= from - 1)
        std::memcpy(static_cast<void*>(all++), &static_cast<Gather*>(posts[__builtin_ctz(from)])->value, sizeof(T));
    }
  }
};

// The first, second, ... `Threads` lanes of a warp.
template <int Threads>
struct WarpGroup {
  static_assert(Threads >= 1 && Threads <= 32, "a logical warp has at most 32 threads");
  static constexpr int threads = Threads;
  int line;

  CUDA_ON_CPU_INLINE static int rank() { return static_cast<int>(lane()) % Threads; }
  CUDA_ON_CPU_INLINE static unsigned mask() {
    return static_cast<unsigned>((std::uint64_t{1} << Threads) - 1) << (lane() / Threads * Threads);
  }
  CUDA_ON_CPU_INLINE void sync() const { __syncwarp(mask(), line); }
  // Like shuffles, it orders no memory accesses.
  template <class T>
  CUDA_ON_CPU_INLINE void gather(const T& value, T* all) const {
    static_assert(std::is_trivially_copyable_v<T>, "a collective moves plain values");
    Gather<T> post{value, all};
    warp_collective(mask(), &post, &Gather<T>::run, "a collective of cub", line);
  }
};

// Where a collective keeps the `nth` item of all: not in the place of the thread that has the item. Otherwise each
// thread would find its own data there, and a missing barrier between two collectives would be no race.
constexpr int shifted(int nth, int by, int count) { return (nth + by) % count; }

// Memory of one thread. It is not initialised, and no constructors are called.
template <class T>
class Private {
 public:
  explicit Private(std::size_t count) : data_(static_cast<T*>(std::malloc(count * sizeof(T) + 1))) {}
  Private(const Private&) = delete;
  Private& operator=(const Private&) = delete;
  ~Private() { std::free(data_); }
  T* get() const { return data_; }

 private:
  T* data_;
};

// A result that CUB leaves undefined.
template <class T>
CUDA_ON_CPU_INLINE T undefined(T value) {
  static_assert(std::is_trivially_copyable_v<T>, "a collective moves plain values");
  poison(&value, sizeof value);
  return value;
}

// The fold of values[first] ... values[last - 1] in this order, as a tree, so that rounding errors stay small.
template <class T, class Values, class Operator>
CUDA_ON_CPU_UNSEEN T fold_tree(const Values& values, std::size_t first, std::size_t last, Operator& combine) {
  if (last - first > 8) {
    std::size_t middle = first + (last - first) / 2;
    T low = fold_tree<T>(values, first, middle, combine);
    return combine(low, fold_tree<T>(values, middle, last, combine));
  }
  T result = values[first];
  for (std::size_t i = first + 1; i < last; ++i) result = combine(result, values[i]);
  return result;
}

// Puts 0 ... count - 1 into the order of `less`, a merge sort: equal ones stay in their order.
template <class Less>
CUDA_ON_CPU_UNSEEN void find_order(std::uint32_t* order, std::size_t count, Less& less) {
  Private<std::uint32_t> memory(count);
  std::uint32_t *from = order, *to = memory.get();
  for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t width = 1; width < count; width *= 2) {
    for (std::size_t low = 0; low < count; low += 2 * width) {
      const std::size_t middle = low + width < count ? low + width : count;
      const std::size_t high = middle + width < count ? middle + width : count;
      for (std::size_t a = low, b = middle, i = low; i < high; ++i)
        to[i] = b == high || (a < middle && !less(from[b], from[a])) ? from[a++] : from[b++];
    }
    std::uint32_t* done = to;
    to = from;
    from = done;
  }
  if (from != order) std::memcpy(order, from, count * sizeof *order);
}

// A number whose order is that of the key's bits from `begin` to `end`: as CUB's radix sorts have it, -0.0 equals 0.0,
// and a NaN is beyond the infinity of its sign.
template <class Key>
CUDA_ON_CPU_UNSEEN std::uint64_t radix_number(const Key& key, int begin, int end) {
  constexpr int bits = 8 * sizeof(Key);
  constexpr bool is_float = std::is_floating_point_v<Key> || is_small_float<Key>;
  static_assert(bits <= 64 && (is_float || std::is_integral_v<Key>), "on the CPU the keys of a radix sort are numbers");
  constexpr std::uint64_t sign = std::uint64_t{1} << (bits - 1), all = sign | (sign - 1);
  std::uint64_t number = 0;
  __builtin_memcpy(&number, &key, sizeof key);
  if (is_float) {
    if (number == sign) number = 0;
    number = number & sign ? ~number & all : number | sign;
  } else if (std::is_signed_v<Key>) {
    number ^= sign;
  }
  std::uint64_t mask = end - begin >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (end - begin)) - 1;
  return begin >= 64 ? 0 : number >> begin & mask;
}

// The order in which a stable radix sort puts keys.
template <class Key>
CUDA_ON_CPU_UNSEEN void find_radix_order(const Key* keys, std::uint32_t* order, std::size_t count, int begin, int end,
                                         bool descending) {
  Private<std::uint64_t> memory(count);
  std::uint64_t* numbers = memory.get();
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = radix_number(keys[i], begin, end);
    if (descending) numbers[i] = ~numbers[i];
  }
  auto less = [numbers](std::uint32_t a, std::uint32_t b) { return numbers[a] < numbers[b]; };
  find_order(order, count, less);
}

}  // namespace cuda_on_cpu
