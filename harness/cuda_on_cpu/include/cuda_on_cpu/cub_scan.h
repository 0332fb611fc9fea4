// cub::BlockScan, cub::WarpScan.
#pragma once

#include "cuda_on_cpu/cub_parts.h"

namespace cuda_on_cpu {

// The scan of a thread's own items after the fold of those of earlier threads, if it `has_before`.
template <class T, int items, class Operator>
CUDA_ON_CPU_INLINE void finish_scan(const T (&input)[items], T (&output)[items], Operator& combine, bool inclusive,
                                    bool has_before, T before) {
  for (int i = 0; i < items; ++i) {
    T own = input[i];  // may be the output's memory
    T sum = has_before || i ? combine(before, own) : own;
    output[i] = inclusive ? sum : before;
    before = sum;
  }
}

// The scan of a block in which each thread has some consecutive items.
template <class Group, class T>
class BlockItems {
 public:
  static constexpr std::size_t slots = Group::threads + 2;  // one a thread, the total, the prefix

  CUDA_ON_CPU_INLINE BlockItems(T* slots, Group group) : slots_(slots), group_(group) {}

  // `seed` comes before the first item; null for none, which leaves the first output of an exclusive scan undefined.
  template <int items, class Operator>
  CUDA_ON_CPU_INLINE void scan(const T (&input)[items], T (&output)[items], Operator& combine, bool inclusive,
                               const T* seed, T& total) {
    T before = exchange(input, combine, total);
    if (seed) before = group_.rank() ? combine(*seed, before) : *seed;
    finish_scan(input, output, combine, inclusive, seed || group_.rank(), before);
  }

  // The first warp's threads call `callback` with the total; thread 0's result is the seed.
  template <int items, class Operator, class Callback>
  CUDA_ON_CPU_INLINE void scan_after(const T (&input)[items], T (&output)[items], Operator& combine, bool inclusive,
                                     Callback& callback) {
    T total = input[0];
    T before = exchange(input, combine, total);
    if (group_.rank() < 32) {
      T prefix = callback(total);
      if (group_.rank() == 0) slots_[Group::threads + 1] = prefix;
    }
    group_.sync();
    T prefix = slots_[Group::threads + 1];
    before = group_.rank() ? combine(prefix, before) : prefix;
    finish_scan(input, output, combine, inclusive, true, before);
  }

 private:
  // Gives the fold of all items of earlier threads, which is undefined for thread 0.
  template <int items, class Operator>
  CUDA_ON_CPU_INLINE T exchange(const T (&input)[items], Operator& combine, T& total) {
    const int rank = group_.rank();
    slots_[shifted(rank, 1, Group::threads)] = fold_tree<T>(input, 0, items, combine);
    group_.sync();
    if (rank == 0) {
      Private<T> values(Group::threads), results(Group::threads + 1);
      std::memcpy(static_cast<void*>(values.get()), slots_, Group::threads * sizeof(T));
      accumulate(values.get(), results.get(), combine);
      std::memcpy(static_cast<void*>(slots_), results.get(), (Group::threads + 1) * sizeof(T));
    }
    group_.sync();
    total = slots_[Group::threads];
    return rank ? slots_[shifted(rank, 2, Group::threads)] : undefined(total);
  }

  template <class Operator>
  CUDA_ON_CPU_UNSEEN static void accumulate(const T* values, T* results, Operator& combine) {
    constexpr int threads = Group::threads;
    T sum = results[shifted(0, 2, threads)] = values[shifted(0, 1, threads)];
    for (int rank = 1; rank < threads; ++rank) {
      results[shifted(rank, 2, threads)] = sum;
      sum = combine(sum, values[shifted(rank, 1, threads)]);
    }
    results[threads] = sum;
  }

  T* slots_;
  Group group_;
};

}  // namespace cuda_on_cpu

// Each scan of one item a thread is one of an array of one item.
#define CUDA_ON_CPU_ONE(BODY) T in[1] = {input}, out[1]; BODY; output = out[0]

namespace cub {

template <class T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockScan {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Scan = ::cuda_on_cpu::BlockItems<Group, T>;
  using Plus = ::cuda::std::plus<>;

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, Scan::slots>;
  CUDA_ON_CPU_INLINE explicit BlockScan(int line = __builtin_LINE())
      : scan_(::cuda_on_cpu::shared_variable<BlockScan, TempStorage, 0>("BlockScan").template as<T>(), Group{line}) {}
  CUDA_ON_CPU_INLINE BlockScan(TempStorage& storage, int line = __builtin_LINE())
      : scan_(storage.template as<T>(), Group{line}) {}

#define CUDA_ON_CPU_SCANS(NAME, INCLUSIVE, SEED)                                                                       \
  template <int N>                                                                                                     \
  CUDA_ON_CPU_INLINE void NAME##Sum(T (&input)[N], T (&output)[N], T& block_aggregate) {                               \
    Plus op;                                                                                                           \
    T zero{};                                                                                                          \
    scan_.scan(input, output, op, INCLUSIVE, SEED, block_aggregate);                                                   \
    static_cast<void>(zero);                                                                                           \
  }                                                                                                                    \
  template <int N>                                                                                                     \
  CUDA_ON_CPU_INLINE void NAME##Sum(T (&input)[N], T (&output)[N]) { T all; NAME##Sum(input, output, all); }           \
  template <int N, class BlockPrefixCallbackOp>                                                                        \
  CUDA_ON_CPU_INLINE void NAME##Sum(T (&input)[N], T (&output)[N], BlockPrefixCallbackOp& prefix) {                    \
    Plus op;                                                                                                           \
    scan_.scan_after(input, output, op, INCLUSIVE, prefix);                                                            \
  }                                                                                                                    \
  CUDA_ON_CPU_INLINE void NAME##Sum(T input, T& output) { CUDA_ON_CPU_ONE(NAME##Sum(in, out)); }                       \
  CUDA_ON_CPU_INLINE void NAME##Sum(T input, T& output, T& block_aggregate) {                                          \
    CUDA_ON_CPU_ONE(NAME##Sum(in, out, block_aggregate));                                                              \
  }                                                                                                                    \
  template <class BlockPrefixCallbackOp>                                                                               \
  CUDA_ON_CPU_INLINE void NAME##Sum(T input, T& output, BlockPrefixCallbackOp& prefix) {                               \
    CUDA_ON_CPU_ONE(NAME##Sum(in, out, prefix));                                                                       \
  }                                                                                                                    \
  template <int N, class ScanOp>                                                                                       \
  CUDA_ON_CPU_INLINE void NAME##Scan(T (&input)[N], T (&output)[N], ScanOp op, T& block_aggregate) {                   \
    scan_.scan(input, output, op, INCLUSIVE, nullptr, block_aggregate);                                                \
  }                                                                                                                    \
  template <int N, class ScanOp>                                                                                       \
  CUDA_ON_CPU_INLINE void NAME##Scan(T (&input)[N], T (&output)[N], ScanOp op) {                                       \
    T all;                                                                                                             \
    scan_.scan(input, output, op, INCLUSIVE, nullptr, all);                                                            \
  }                                                                                                                    \
  template <int N, class ScanOp>                                                                                       \
  CUDA_ON_CPU_INLINE void NAME##Scan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op, T& block_aggregate) {  \
    scan_.scan(input, output, op, INCLUSIVE, &initial_value, block_aggregate);                                         \
  }                                                                                                                    \
  template <int N, class ScanOp>                                                                                       \
  CUDA_ON_CPU_INLINE void NAME##Scan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op) {                      \
    T all;                                                                                                             \
    scan_.scan(input, output, op, INCLUSIVE, &initial_value, all);                                                     \
  }                                                                                                                    \
  template <int N, class ScanOp, class BlockPrefixCallbackOp>                                                          \
  CUDA_ON_CPU_INLINE void NAME##Scan(T (&input)[N], T (&output)[N], ScanOp op, BlockPrefixCallbackOp& prefix) {        \
    scan_.scan_after(input, output, op, INCLUSIVE, prefix);                                                            \
  }                                                                                                                    \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME##Scan(T input, T& output, ScanOp op) {                                                  \
    T all;                                                                                                             \
    CUDA_ON_CPU_ONE(scan_.scan(in, out, op, INCLUSIVE, nullptr, all));                                                 \
  }                                                                                                                    \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME##Scan(T input, T& output, ScanOp op, T& block_aggregate) {                              \
    CUDA_ON_CPU_ONE(scan_.scan(in, out, op, INCLUSIVE, nullptr, block_aggregate));                                     \
  }                                                                                                                    \
  template <class ScanOp, class BlockPrefixCallbackOp>                                                                 \
  CUDA_ON_CPU_INLINE void NAME##Scan(T input, T& output, ScanOp op, BlockPrefixCallbackOp& prefix) {                   \
    CUDA_ON_CPU_ONE(scan_.scan_after(in, out, op, INCLUSIVE, prefix));                                                 \
  }
  CUDA_ON_CPU_SCANS(Inclusive, true, nullptr)  // InclusiveSum InclusiveScan
  CUDA_ON_CPU_SCANS(Exclusive, false, &zero)   // ExclusiveSum ExclusiveScan
#undef CUDA_ON_CPU_SCANS
  template <class ScanOp>
  CUDA_ON_CPU_INLINE void ExclusiveScan(T input, T& output, T initial_value, ScanOp op) {
    T all;
    ExclusiveScan(input, output, initial_value, op, all);
  }
  template <class ScanOp>
  CUDA_ON_CPU_INLINE void ExclusiveScan(T input, T& output, T initial_value, ScanOp op, T& block_aggregate) {
    CUDA_ON_CPU_ONE(scan_.scan(in, out, op, false, &initial_value, block_aggregate));
  }

 private:
  Scan scan_;
};

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpScan {
  using Group = ::cuda_on_cpu::WarpGroup<LOGICAL_WARP_THREADS>;
  using Plus = ::cuda::std::plus<>;

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, Group::threads>;  // shuffles do not use it
  CUDA_ON_CPU_INLINE WarpScan(TempStorage&, int line = __builtin_LINE()) : group_{line} {}

  CUDA_ON_CPU_INLINE void InclusiveSum(T input, T& output) { InclusiveScan(input, output, Plus()); }
  CUDA_ON_CPU_INLINE void InclusiveSum(T input, T& output, T& warp_aggregate) {
    InclusiveScan(input, output, Plus(), warp_aggregate);
  }
  CUDA_ON_CPU_INLINE void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, Plus()); }
  CUDA_ON_CPU_INLINE void ExclusiveSum(T input, T& output, T& warp_aggregate) {
    ExclusiveScan(input, output, T{}, Plus(), warp_aggregate);
  }

#define CUDA_ON_CPU_SCANS(NAME, INCLUSIVE)                                                                             \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME(T input, T& output, ScanOp op) { T all; NAME(input, output, op, all); }                 \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME(T input, T& output, ScanOp op, T& warp_aggregate) {                                     \
    CUDA_ON_CPU_ONE(scan(in, out, op, INCLUSIVE, nullptr, warp_aggregate));                                            \
  }                                                                                                                    \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME(T input, T& output, T initial_value, ScanOp op) {                                       \
    T all;                                                                                                             \
    NAME(input, output, initial_value, op, all);                                                                       \
  }                                                                                                                    \
  template <class ScanOp>                                                                                              \
  CUDA_ON_CPU_INLINE void NAME(T input, T& output, T initial_value, ScanOp op, T& warp_aggregate) {                    \
    CUDA_ON_CPU_ONE(scan(in, out, op, INCLUSIVE, &initial_value, warp_aggregate));                                     \
  }
  CUDA_ON_CPU_SCANS(InclusiveScan, true)
  CUDA_ON_CPU_SCANS(ExclusiveScan, false)
#undef CUDA_ON_CPU_SCANS

  template <class ScanOp>
  CUDA_ON_CPU_INLINE void Scan(T input, T& inclusive_output, T& exclusive_output, ScanOp op) {
    ExclusiveScan(input, exclusive_output, op);
    inclusive_output = group_.rank() ? op(exclusive_output, input) : input;
  }
  template <class ScanOp>
  CUDA_ON_CPU_INLINE void Scan(T input, T& inclusive_output, T& exclusive_output, T initial_value, ScanOp op) {
    ExclusiveScan(input, exclusive_output, initial_value, op);
    inclusive_output = op(exclusive_output, input);
  }
  CUDA_ON_CPU_INLINE T Broadcast(T input, unsigned src_lane) {
    T all[Group::threads];
    group_.gather(input, all);
    return all[src_lane];
  }

 private:
  // `seed` comes before the first lane's input; null for none, which leaves its exclusive scan undefined.
  template <class ScanOp>
  CUDA_ON_CPU_INLINE void scan(const T (&input)[1], T (&output)[1], ScanOp& op, bool inclusive, const T* seed, T& total) {
    T all[Group::threads];
    group_.gather(input[0], all);
    const int rank = group_.rank();
    T before = seed ? *seed : ::cuda_on_cpu::undefined(input[0]);
    for (int i = 0; i < rank; ++i) before = i || seed ? op(before, all[i]) : all[i];
    total = all[0];
    for (int i = 1; i < Group::threads; ++i) total = op(total, all[i]);
    ::cuda_on_cpu::finish_scan(input, output, op, inclusive, seed || rank, before);
  }

  Group group_;
};

}  // namespace cub

#undef CUDA_ON_CPU_ONE
