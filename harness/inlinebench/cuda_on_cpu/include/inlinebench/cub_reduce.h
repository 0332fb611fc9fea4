// cub::BlockReduce, cub::WarpReduce.
#pragma once

#include "inlinebench/cub_parts.h"

namespace inlinebench {

// Gives the fold of the first `valid` threads' values to thread 0. To the others the result is undefined.
template <class Group, class T, class Operator>
INLINEBENCH_INLINE T reduce_in(const Group& group, T* slots, const T& value, int valid, Operator& combine) {
  const int rank = group.rank();
  slots[rank] = value;
  group.sync();
  if (rank != 0 || valid < 1) return undefined(value);
  const std::size_t count = valid < group.threads ? valid : group.threads;
  Private<T> values(count);
  std::memcpy(static_cast<void*>(values.get()), slots, count * sizeof(T));
  return fold_tree<T>(values.get(), 0, count, combine);
}

}  // namespace inlinebench

namespace cub {

template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockReduce {
  using Group = ::inlinebench::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;

 public:
  using TempStorage = ::inlinebench::StorageOf<T, Group::threads>;
  INLINEBENCH_INLINE explicit BlockReduce(int line = __builtin_LINE())
      : slots_(::inlinebench::shared_variable<BlockReduce, TempStorage, 0>("BlockReduce").template as<T>()),
        group_{line} {}
  INLINEBENCH_INLINE BlockReduce(TempStorage& storage, int line = __builtin_LINE())
      : slots_(storage.template as<T>()), group_{line} {}

  template <class ReductionOp>
  INLINEBENCH_INLINE T Reduce(T input, ReductionOp op, int num_valid) {
    return ::inlinebench::reduce_in(group_, slots_, input, num_valid, op);
  }
  template <class ReductionOp>
  INLINEBENCH_INLINE T Reduce(T input, ReductionOp op) { return Reduce(input, op, Group::threads); }
  template <int ITEMS_PER_THREAD, class ReductionOp>
  INLINEBENCH_INLINE T Reduce(T (&inputs)[ITEMS_PER_THREAD], ReductionOp op) {
    return Reduce(::inlinebench::fold_tree<T>(inputs, 0, ITEMS_PER_THREAD, op), op);
  }
  INLINEBENCH_INLINE T Sum(T input, int num_valid) { return Reduce(input, ::cuda::std::plus<>(), num_valid); }
  INLINEBENCH_INLINE T Sum(T input) { return Reduce(input, ::cuda::std::plus<>()); }
  template <int ITEMS_PER_THREAD>
  INLINEBENCH_INLINE T Sum(T (&inputs)[ITEMS_PER_THREAD]) { return Reduce(inputs, ::cuda::std::plus<>()); }

 private:
  T* slots_;
  Group group_;
};

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpReduce {
  using Group = ::inlinebench::WarpGroup<LOGICAL_WARP_THREADS>;
  struct Flagged {
    T value;
    int flag;
  };

 public:
  using TempStorage = ::inlinebench::StorageOf<Flagged, Group::threads>;
  INLINEBENCH_INLINE WarpReduce(TempStorage& storage, int line = __builtin_LINE()) : storage_(storage), group_{line} {}

  template <class ReductionOp>
  INLINEBENCH_INLINE T Reduce(T input, ReductionOp op, int valid_items) {
    return ::inlinebench::reduce_in(group_, storage_.template as<T>(), input, valid_items, op);
  }
  template <class ReductionOp>
  INLINEBENCH_INLINE T Reduce(T input, ReductionOp op) { return Reduce(input, op, Group::threads); }
  INLINEBENCH_INLINE T Sum(T input, int valid_items) { return Reduce(input, ::cuda::std::plus<>(), valid_items); }
  INLINEBENCH_INLINE T Sum(T input) { return Reduce(input, ::cuda::std::plus<>()); }

  // The first lane of each segment gets the fold of its segment.
  template <class ReductionOp, class FlagT>
  INLINEBENCH_INLINE T HeadSegmentedReduce(T input, FlagT head_flag, ReductionOp op) {
    return segmented(input, head_flag, op, 0);
  }
  template <class ReductionOp, class FlagT>
  INLINEBENCH_INLINE T TailSegmentedReduce(T input, FlagT tail_flag, ReductionOp op) {
    return segmented(input, tail_flag, op, 1);
  }
  template <class FlagT>
  INLINEBENCH_INLINE T HeadSegmentedSum(T input, FlagT head_flag) {
    return segmented(input, head_flag, ::cuda::std::plus<>(), 0);
  }
  template <class FlagT>
  INLINEBENCH_INLINE T TailSegmentedSum(T input, FlagT tail_flag) {
    return segmented(input, tail_flag, ::cuda::std::plus<>(), 1);
  }

 private:
  // A segment ends before a head, or after a tail: before a lane whose predecessor (`behind` is 1) has a flag.
  template <class FlagT, class ReductionOp>
  INLINEBENCH_INLINE T segmented(const T& input, FlagT flag, ReductionOp op, int behind) {
    Flagged* slots = storage_.template as<Flagged>();
    const int rank = group_.rank();
    slots[rank].value = input;
    slots[rank].flag = flag ? 1 : 0;
    group_.sync();
    T result = input;
    for (int i = rank + 1; i < Group::threads && !slots[i - behind].flag; ++i) result = op(result, slots[i].value);
    return result;
  }

  TempStorage& storage_;
  Group group_;
};

}  // namespace cub
