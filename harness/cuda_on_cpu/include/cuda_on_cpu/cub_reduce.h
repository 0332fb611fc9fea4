// cub::BlockReduce, cub::WarpReduce.
#pragma once

#include "cuda_on_cpu/cub_parts.h"

namespace cuda_on_cpu {

// Puts the values of all threads into `all`, which only thread 0 may read.
template <int X, int Y, int Z, class T>
CUDA_ON_CPU_INLINE void collect(const BlockGroup<X, Y, Z>& group, T* slots, const T& value, T* all) {
  slots[group.rank()] = value;
  group.sync();
  if (group.rank() == 0) std::memcpy(static_cast<void*>(all), slots, group.threads * sizeof(T));
}
template <int Threads, class T>
CUDA_ON_CPU_INLINE void collect(const WarpGroup<Threads>& group, T*, const T& value, T* all) {
  group.gather(value, all);
}

// Gives the fold of the first `valid` threads' values to thread 0. To the others the result is undefined.
template <class Group, class T, class Operator>
CUDA_ON_CPU_INLINE T reduce_in(const Group& group, T* slots, const T& value, int valid, Operator& combine) {
  Private<T> values(Group::threads);
  collect(group, slots, value, values.get());
  if (group.rank() != 0 || valid < 1) return undefined(value);
  return fold_tree<T>(values.get(), 0, valid < group.threads ? valid : group.threads, combine);
}

}  // namespace cuda_on_cpu

namespace cub {

template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockReduce {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, Group::threads>;
  CUDA_ON_CPU_INLINE explicit BlockReduce(int line = __builtin_LINE())
      : slots_(::cuda_on_cpu::shared_variable<BlockReduce, TempStorage, 0>("BlockReduce").template as<T>()),
        group_{line} {}
  CUDA_ON_CPU_INLINE BlockReduce(TempStorage& storage, int line = __builtin_LINE())
      : slots_(storage.template as<T>()), group_{line} {}

  template <class ReductionOp>
  CUDA_ON_CPU_INLINE T Reduce(T input, ReductionOp op, int num_valid) {
    return ::cuda_on_cpu::reduce_in(group_, slots_, input, num_valid, op);
  }
  template <class ReductionOp>
  CUDA_ON_CPU_INLINE T Reduce(T input, ReductionOp op) { return Reduce(input, op, Group::threads); }
  template <int ITEMS_PER_THREAD, class ReductionOp>
  CUDA_ON_CPU_INLINE T Reduce(T (&inputs)[ITEMS_PER_THREAD], ReductionOp op) {
    return Reduce(::cuda_on_cpu::fold_tree<T>(inputs, 0, ITEMS_PER_THREAD, op), op);
  }
  CUDA_ON_CPU_INLINE T Sum(T input, int num_valid) { return Reduce(input, ::cuda::std::plus<>(), num_valid); }
  CUDA_ON_CPU_INLINE T Sum(T input) { return Reduce(input, ::cuda::std::plus<>()); }
  template <int ITEMS_PER_THREAD>
  CUDA_ON_CPU_INLINE T Sum(T (&inputs)[ITEMS_PER_THREAD]) { return Reduce(inputs, ::cuda::std::plus<>()); }

 private:
  T* slots_;
  Group group_;
};

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpReduce {
  using Group = ::cuda_on_cpu::WarpGroup<LOGICAL_WARP_THREADS>;
  struct Flagged {
    T value;
    int flag;
  };

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<Flagged, Group::threads>;  // shuffles do not use it
  CUDA_ON_CPU_INLINE WarpReduce(TempStorage&, int line = __builtin_LINE()) : group_{line} {}

  template <class ReductionOp>
  CUDA_ON_CPU_INLINE T Reduce(T input, ReductionOp op, int valid_items) {
    return ::cuda_on_cpu::reduce_in(group_, static_cast<T*>(nullptr), input, valid_items, op);
  }
  template <class ReductionOp>
  CUDA_ON_CPU_INLINE T Reduce(T input, ReductionOp op) { return Reduce(input, op, Group::threads); }
  CUDA_ON_CPU_INLINE T Sum(T input, int valid_items) { return Reduce(input, ::cuda::std::plus<>(), valid_items); }
  CUDA_ON_CPU_INLINE T Sum(T input) { return Reduce(input, ::cuda::std::plus<>()); }

  // The first lane of each segment gets the fold of its segment.
  template <class ReductionOp, class FlagT>
  CUDA_ON_CPU_INLINE T HeadSegmentedReduce(T input, FlagT head_flag, ReductionOp op) {
    return segmented(input, head_flag, op, 0);
  }
  template <class ReductionOp, class FlagT>
  CUDA_ON_CPU_INLINE T TailSegmentedReduce(T input, FlagT tail_flag, ReductionOp op) {
    return segmented(input, tail_flag, op, 1);
  }
  template <class FlagT>
  CUDA_ON_CPU_INLINE T HeadSegmentedSum(T input, FlagT head_flag) {
    return segmented(input, head_flag, ::cuda::std::plus<>(), 0);
  }
  template <class FlagT>
  CUDA_ON_CPU_INLINE T TailSegmentedSum(T input, FlagT tail_flag) {
    return segmented(input, tail_flag, ::cuda::std::plus<>(), 1);
  }

 private:
  // A segment ends before a head, or after a tail: before a lane whose predecessor (`behind` is 1) has a flag.
  template <class FlagT, class ReductionOp>
  CUDA_ON_CPU_INLINE T segmented(const T& input, FlagT flag, ReductionOp op, int behind) {
    Flagged all[Group::threads];
    group_.gather(Flagged{input, flag ? 1 : 0}, all);
    T result = input;
    for (int i = group_.rank() + 1; i < Group::threads && !all[i - behind].flag; ++i) result = op(result, all[i].value);
    return result;
  }

  Group group_;
};

}  // namespace cub
