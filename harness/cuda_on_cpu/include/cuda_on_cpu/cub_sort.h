// cub::BlockRadixSort, cub::BlockMergeSort, cub::WarpMergeSort.
#pragma once

#include "cuda_on_cpu/cub_parts.h"

namespace cuda_on_cpu {

// A stable sort of a group's items: thread 0 finds the order of the keys, then all threads move keys and values through
// TempStorage, which is as large as CUB's: it holds either keys, or ranks, or values.
template <class Group, class Key, class Value, int items>
class GroupSort {
  static constexpr int tile = Group::threads * items;
  static constexpr bool only_keys = std::is_same_v<Value, cub::NullType>;
  using Rank = std::conditional_t<tile <= 65536, std::uint16_t, std::uint32_t>;

 public:
  using Storage = TempStorage<tile * larger(larger(sizeof(Key), sizeof(Rank)), only_keys ? 1 : sizeof(Value)),
                              larger(larger(alignof(Key), alignof(Rank)), only_keys ? 1 : alignof(Value))>;

  CUDA_ON_CPU_INLINE GroupSort(Storage& storage, Group group) : storage_(storage), group_(group) {}

  // `find(keys, order)` is called by thread 0.
  template <class Find>
  CUDA_ON_CPU_INLINE void sort(Key (&keys)[items], Value* values, const Find& find, bool striped) {
    int ranks[items];
    find_ranks(keys, ranks, find);
    group_.sync();
    scatter(keys, ranks, striped);
    if constexpr (!only_keys) {
      if (!values) return;
      group_.sync();
      scatter(reinterpret_cast<Value(&)[items]>(*values), ranks, striped);
    }
  }

 private:
  template <class Find>
  CUDA_ON_CPU_INLINE void find_ranks(const Key (&keys)[items], int (&ranks)[items], const Find& find) {
    const int rank = group_.rank();
    Key* slots = storage_.template as<Key>();
    for (int i = 0; i < items; ++i) slots[shifted(rank * items + i, items, tile)] = keys[i];
    group_.sync();
    if (rank == 0) {
      Private<Key> all(tile);
      Private<Rank> places(tile);
      std::memcpy(static_cast<void*>(all.get()), slots + items % tile, (tile - items) * sizeof(Key));
      std::memcpy(static_cast<void*>(all.get() + tile - items), slots, items * sizeof(Key));
      invert(all.get(), places.get(), find);
      std::memcpy(storage_.bytes, places.get(), tile * sizeof(Rank));
    }
    group_.sync();
    const Rank* places = storage_.template as<Rank>();
    for (int i = 0; i < items; ++i) ranks[i] = places[rank * items + i];
  }

  template <class Find>
  CUDA_ON_CPU_UNSEEN static void invert(const Key* keys, Rank* places, const Find& find) {
    Private<std::uint32_t> order(tile);
    find(keys, order.get());
    for (int i = 0; i < tile; ++i) places[order.get()[i]] = static_cast<Rank>(i);
  }

  template <class T>
  CUDA_ON_CPU_INLINE void scatter(T (&values)[items], const int (&ranks)[items], bool striped) {
    T* slots = storage_.template as<T>();
    for (int i = 0; i < items; ++i) slots[shifted(ranks[i], 2 * items, tile)] = values[i];
    group_.sync();
    const int rank = group_.rank();
    for (int i = 0; i < items; ++i)
      values[i] = slots[shifted(striped ? i * Group::threads + rank : rank * items + i, 2 * items, tile)];
  }

  Storage& storage_;
  Group group_;
};

// CUB's merge sorts begin with a barrier, so their TempStorage may have been used just before.
template <class Group, class Key, class Value, int items>
class GroupMergeSort {
  static_assert((Group::threads & (Group::threads - 1)) == 0, "the number of threads must be a power of two");
  static constexpr int tile = Group::threads * items;
  using Sorter = GroupSort<Group, Key, Value, items>;

 public:
  using TempStorage = typename Sorter::Storage;
  CUDA_ON_CPU_INLINE GroupMergeSort(TempStorage& storage, Group group) : storage_(storage), group_(group) {}

#define CUDA_ON_CPU_MERGE_SORTS(NAME)                                                                                  \
  template <class CompareOp>                                                                                           \
  CUDA_ON_CPU_INLINE void NAME(Key (&keys)[items], CompareOp compare_op) { sort(keys, nullptr, compare_op); }          \
  template <class CompareOp>                                                                                           \
  CUDA_ON_CPU_INLINE void NAME(Key (&keys)[items], CompareOp compare_op, int valid_items, Key oob_default) {           \
    fill(keys, valid_items, oob_default);                                                                              \
    sort(keys, nullptr, compare_op);                                                                                   \
  }                                                                                                                    \
  template <class CompareOp>                                                                                           \
  CUDA_ON_CPU_INLINE void NAME(Key (&keys)[items], Value (&values)[items], CompareOp compare_op) {                     \
    sort(keys, values, compare_op);                                                                                    \
  }                                                                                                                    \
  template <class CompareOp>                                                                                           \
  CUDA_ON_CPU_INLINE void NAME(Key (&keys)[items], Value (&values)[items], CompareOp compare_op, int valid_items,      \
                               Key oob_default) {                                                                      \
    fill(keys, valid_items, oob_default);                                                                              \
    sort(keys, values, compare_op);                                                                                    \
  }
  CUDA_ON_CPU_MERGE_SORTS(Sort)
  CUDA_ON_CPU_MERGE_SORTS(StableSort)
#undef CUDA_ON_CPU_MERGE_SORTS

 private:
  CUDA_ON_CPU_INLINE void fill(Key (&keys)[items], int valid, const Key& other) {
    for (int i = 0; i < items; ++i)
      if (group_.rank() * items + i >= valid) keys[i] = other;
  }

  template <class CompareOp>
  CUDA_ON_CPU_INLINE void sort(Key (&keys)[items], Value* values, CompareOp& compare) {
    auto find = [&compare](const Key* all, std::uint32_t* order) {
      auto less = [&compare, all](std::uint32_t a, std::uint32_t b) { return compare(all[a], all[b]); };
      find_order(order, tile, less);
    };
    group_.sync();
    Sorter(storage_, group_).sort(keys, values, find, false);
  }

  TempStorage& storage_;
  Group group_;
};

}  // namespace cuda_on_cpu

namespace cub {

// The last parameters are: RADIX_BITS, MEMOIZE_OUTER_SCAN, INNER_SCAN_ALGORITHM, SMEM_CONFIG, BLOCK_DIM_Y, BLOCK_DIM_Z.
template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockRadixSort {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Sorter = ::cuda_on_cpu::GroupSort<Group, KeyT, ValueT, ITEMS_PER_THREAD>;

 public:
  using TempStorage = typename Sorter::Storage;
  CUDA_ON_CPU_INLINE explicit BlockRadixSort(int line = __builtin_LINE())
      : sorter_(::cuda_on_cpu::shared_variable<BlockRadixSort, TempStorage, 0>("BlockRadixSort"), Group{line}) {}
  CUDA_ON_CPU_INLINE BlockRadixSort(TempStorage& storage, int line = __builtin_LINE()) : sorter_(storage, Group{line}) {}

#define CUDA_ON_CPU_RADIX_SORT(NAME, DESCENDING, STRIPED)                                                              \
  CUDA_ON_CPU_INLINE void NAME(KeyT (&keys)[ITEMS_PER_THREAD], int begin_bit = 0, int end_bit = 8 * sizeof(KeyT)) {    \
    sort(keys, nullptr, begin_bit, end_bit, DESCENDING, STRIPED);                                                      \
  }                                                                                                                    \
  CUDA_ON_CPU_INLINE void NAME(KeyT (&keys)[ITEMS_PER_THREAD], ValueT (&values)[ITEMS_PER_THREAD], int begin_bit = 0,  \
                               int end_bit = 8 * sizeof(KeyT)) {                                                       \
    sort(keys, values, begin_bit, end_bit, DESCENDING, STRIPED);                                                       \
  }
  CUDA_ON_CPU_RADIX_SORT(Sort, false, false)
  CUDA_ON_CPU_RADIX_SORT(SortDescending, true, false)
  CUDA_ON_CPU_RADIX_SORT(SortBlockedToStriped, false, true)
  CUDA_ON_CPU_RADIX_SORT(SortDescendingBlockedToStriped, true, true)
#undef CUDA_ON_CPU_RADIX_SORT

 private:
  CUDA_ON_CPU_INLINE void sort(KeyT (&keys)[ITEMS_PER_THREAD], ValueT* values, int begin, int end, bool descending,
                               bool striped) {
    auto find = [=](const KeyT* all, std::uint32_t* order) {
      ::cuda_on_cpu::find_radix_order(all, order, Group::threads * ITEMS_PER_THREAD, begin, end, descending);
    };
    sorter_.sort(keys, values, find, striped);
  }

  Sorter sorter_;
};

template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockMergeSort
    : public ::cuda_on_cpu::GroupMergeSort<::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>, KeyT, ValueT,
                                           ITEMS_PER_THREAD> {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Base = ::cuda_on_cpu::GroupMergeSort<Group, KeyT, ValueT, ITEMS_PER_THREAD>;

 public:
  CUDA_ON_CPU_INLINE explicit BlockMergeSort(int line = __builtin_LINE())
      : Base(::cuda_on_cpu::shared_variable<BlockMergeSort, typename Base::TempStorage, 0>("BlockMergeSort"),
             Group{line}) {}
  CUDA_ON_CPU_INLINE explicit BlockMergeSort(typename Base::TempStorage& storage, int line = __builtin_LINE())
      : Base(storage, Group{line}) {}
};

template <class KeyT, int ITEMS_PER_THREAD, int LOGICAL_WARP_THREADS = 32, class ValueT = NullType>
class WarpMergeSort : public ::cuda_on_cpu::GroupMergeSort<::cuda_on_cpu::WarpGroup<LOGICAL_WARP_THREADS>, KeyT, ValueT,
                                                           ITEMS_PER_THREAD> {
  using Group = ::cuda_on_cpu::WarpGroup<LOGICAL_WARP_THREADS>;
  using Base = ::cuda_on_cpu::GroupMergeSort<Group, KeyT, ValueT, ITEMS_PER_THREAD>;

 public:
  CUDA_ON_CPU_INLINE WarpMergeSort(typename Base::TempStorage& storage, int line = __builtin_LINE())
      : Base(storage, Group{line}) {}
};

}  // namespace cub
