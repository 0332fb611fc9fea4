// cub::BlockExchange, cub::BlockLoad, cub::BlockStore, cub::BlockHistogram.
#pragma once

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/cub_parts.h"

namespace cuda_on_cpu {

// How a tile's items belong to threads.
enum class Arrangement { blocked, striped, warp_striped };

template <Arrangement arrangement, int threads, int items>
CUDA_ON_CPU_INLINE int place(int rank, int item) {
  if (arrangement == Arrangement::blocked) return rank * items + item;
  if (arrangement == Arrangement::striped) return item * threads + rank;
  return rank / 32 * 32 * items + item * 32 + rank % 32;
}

// Warp-striped items stay in their warp, so a barrier of the warp is enough.
template <Arrangement from, Arrangement to, class Group, class T, class U, int items>
CUDA_ON_CPU_INLINE void exchange(const Group& group, T* slots, const T (&input)[items], U (&output)[items]) {
  const int rank = group.rank();
  for (int i = 0; i < items; ++i) slots[place<from, Group::threads, items>(rank, i)] = input[i];
  if (from == Arrangement::warp_striped || to == Arrangement::warp_striped)
    __syncwarp(0xffffffffu, group.line);
  else
    group.sync();
  for (int i = 0; i < items; ++i) output[i] = slots[place<to, Group::threads, items>(rank, i)];
}

template <Arrangement arrangement, int threads, class Iterator, class T, int items>
CUDA_ON_CPU_INLINE void load(int rank, Iterator from, T (&values)[items], int valid) {
  for (int i = 0; i < items; ++i)
    if (int at = place<arrangement, threads, items>(rank, i); at < valid) values[i] = from[at];
}
template <Arrangement arrangement, int threads, class Iterator, class T, int items>
CUDA_ON_CPU_INLINE void store(int rank, Iterator to, const T (&values)[items], int valid) {
  for (int i = 0; i < items; ++i)
    if (int at = place<arrangement, threads, items>(rank, i); at < valid) to[at] = values[i];
}

}  // namespace cuda_on_cpu

namespace cub {

// By rank in the block. LoadDirectBlocked LoadDirectStriped LoadDirectWarpStriped StoreDirectBlocked StoreDirectStriped
// StoreDirectWarpStriped
#define CUDA_ON_CPU_DIRECT(SUFFIX, ARRANGEMENT, HEAD, THREADS)                                                         \
  template <HEAD class T, int N, class Iterator>                                                                       \
  CUDA_ON_CPU_INLINE void LoadDirect##SUFFIX(int rank, Iterator from, T (&items)[N], int valid = 1 << 30) {            \
    ::cuda_on_cpu::load<::cuda_on_cpu::Arrangement::ARRANGEMENT, THREADS>(rank, from, items, valid);                   \
  }                                                                                                                    \
  template <HEAD class T, class Default, int N, class Iterator>                                                        \
  CUDA_ON_CPU_INLINE void LoadDirect##SUFFIX(int rank, Iterator from, T (&items)[N], int valid, Default other) {       \
    for (T& item : items) item = other;                                                                                \
    ::cuda_on_cpu::load<::cuda_on_cpu::Arrangement::ARRANGEMENT, THREADS>(rank, from, items, valid);                   \
  }                                                                                                                    \
  template <HEAD class T, int N, class Iterator>                                                                       \
  CUDA_ON_CPU_INLINE void StoreDirect##SUFFIX(int rank, Iterator to, T (&items)[N], int valid = 1 << 30) {             \
    ::cuda_on_cpu::store<::cuda_on_cpu::Arrangement::ARRANGEMENT, THREADS>(rank, to, items, valid);                    \
  }
#define CUDA_ON_CPU_THREADS int BLOCK_THREADS,
CUDA_ON_CPU_DIRECT(Blocked, blocked, , 0)
CUDA_ON_CPU_DIRECT(Striped, striped, CUDA_ON_CPU_THREADS, BLOCK_THREADS)
CUDA_ON_CPU_DIRECT(WarpStriped, warp_striped, , 0)
#undef CUDA_ON_CPU_THREADS
#undef CUDA_ON_CPU_DIRECT

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockLoad {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Arrangement = ::cuda_on_cpu::Arrangement;
  static constexpr bool transposes = ALGORITHM >= BLOCK_LOAD_TRANSPOSE;
  static constexpr Arrangement arrangement =
      ALGORITHM == BLOCK_LOAD_DIRECT || ALGORITHM == BLOCK_LOAD_VECTORIZE ? Arrangement::blocked
      : ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE                            ? Arrangement::warp_striped
                                                                          : Arrangement::striped;
  static_assert(ALGORITHM < BLOCK_LOAD_WARP_TRANSPOSE || Group::threads % 32 == 0, "whole warps are needed");

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, transposes ? Group::threads * ITEMS_PER_THREAD : 0>;
  CUDA_ON_CPU_INLINE explicit BlockLoad(int line = __builtin_LINE())
      : storage_(::cuda_on_cpu::shared_variable<BlockLoad, TempStorage, 0>("BlockLoad")), group_{line} {}
  CUDA_ON_CPU_INLINE BlockLoad(TempStorage& storage, int line = __builtin_LINE()) : storage_(storage), group_{line} {}

  // Items beyond `block_items_end` keep what they are, or get the default.
  template <class Iterator>
  CUDA_ON_CPU_INLINE void Load(Iterator block_src_it, T (&dst_items)[ITEMS_PER_THREAD], int block_items_end = 1 << 30) {
    ::cuda_on_cpu::load<arrangement, Group::threads>(group_.rank(), block_src_it, dst_items, block_items_end);
    if constexpr (transposes)
      ::cuda_on_cpu::exchange<arrangement, Arrangement::blocked>(group_, storage_.template as<T>(), dst_items,
                                                                 dst_items);
  }
  template <class Iterator, class DefaultT>
  CUDA_ON_CPU_INLINE void Load(Iterator block_src_it, T (&dst_items)[ITEMS_PER_THREAD], int block_items_end,
                               DefaultT oob_default) {
    for (T& item : dst_items) item = oob_default;
    Load(block_src_it, dst_items, block_items_end);
  }

 private:
  TempStorage& storage_;
  Group group_;
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockStore {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Arrangement = ::cuda_on_cpu::Arrangement;
  static constexpr bool transposes = ALGORITHM >= BLOCK_STORE_TRANSPOSE;
  static constexpr Arrangement arrangement =
      ALGORITHM == BLOCK_STORE_DIRECT || ALGORITHM == BLOCK_STORE_VECTORIZE ? Arrangement::blocked
      : ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE                             ? Arrangement::warp_striped
                                                                            : Arrangement::striped;
  static_assert(ALGORITHM < BLOCK_STORE_WARP_TRANSPOSE || Group::threads % 32 == 0, "whole warps are needed");

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, transposes ? Group::threads * ITEMS_PER_THREAD : 0>;
  CUDA_ON_CPU_INLINE explicit BlockStore(int line = __builtin_LINE())
      : storage_(::cuda_on_cpu::shared_variable<BlockStore, TempStorage, 0>("BlockStore")), group_{line} {}
  CUDA_ON_CPU_INLINE BlockStore(TempStorage& storage, int line = __builtin_LINE()) : storage_(storage), group_{line} {}

  template <class Iterator>
  CUDA_ON_CPU_INLINE void Store(Iterator block_itr, T (&items)[ITEMS_PER_THREAD], int valid_items = 1 << 30) {
    if constexpr (transposes)
      ::cuda_on_cpu::exchange<Arrangement::blocked, arrangement>(group_, storage_.template as<T>(), items, items);
    ::cuda_on_cpu::store<arrangement, Group::threads>(group_.rank(), block_itr, items, valid_items);
  }

 private:
  TempStorage& storage_;
  Group group_;
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, bool WARP_TIME_SLICING = false, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockExchange {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  using Arrangement = ::cuda_on_cpu::Arrangement;

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, Group::threads * ITEMS_PER_THREAD>;
  CUDA_ON_CPU_INLINE explicit BlockExchange(int line = __builtin_LINE())
      : slots_(::cuda_on_cpu::shared_variable<BlockExchange, TempStorage, 0>("BlockExchange").template as<T>()),
        group_{line} {}
  CUDA_ON_CPU_INLINE BlockExchange(TempStorage& storage, int line = __builtin_LINE())
      : slots_(storage.template as<T>()), group_{line} {}

#define CUDA_ON_CPU_EXCHANGE(NAME, FROM, TO)                                                                           \
  template <class OutputT>                                                                                             \
  CUDA_ON_CPU_INLINE void NAME(const T (&input)[ITEMS_PER_THREAD], OutputT (&output)[ITEMS_PER_THREAD]) {              \
    ::cuda_on_cpu::exchange<Arrangement::FROM, Arrangement::TO>(group_, slots_, input, output);                        \
  }                                                                                                                    \
  CUDA_ON_CPU_INLINE void NAME(T (&items)[ITEMS_PER_THREAD]) { NAME(items, items); }
  CUDA_ON_CPU_EXCHANGE(StripedToBlocked, striped, blocked)
  CUDA_ON_CPU_EXCHANGE(BlockedToStriped, blocked, striped)
  CUDA_ON_CPU_EXCHANGE(WarpStripedToBlocked, warp_striped, blocked)
  CUDA_ON_CPU_EXCHANGE(BlockedToWarpStriped, blocked, warp_striped)
#undef CUDA_ON_CPU_EXCHANGE

#define CUDA_ON_CPU_SCATTER(NAME, TO)                                                                                  \
  template <class OutputT, class OffsetT>                                                                              \
  CUDA_ON_CPU_INLINE void NAME(const T (&input)[ITEMS_PER_THREAD], OutputT (&output)[ITEMS_PER_THREAD],                \
                               OffsetT (&ranks)[ITEMS_PER_THREAD]) {                                                   \
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) slots_[ranks[i]] = input[i];                                            \
    group_.sync();                                                                                                     \
    for (int i = 0; i < ITEMS_PER_THREAD; ++i)                                                                         \
      output[i] = slots_[::cuda_on_cpu::place<Arrangement::TO, Group::threads, ITEMS_PER_THREAD>(group_.rank(), i)];   \
  }                                                                                                                    \
  template <class OffsetT>                                                                                             \
  CUDA_ON_CPU_INLINE void NAME(T (&items)[ITEMS_PER_THREAD], OffsetT (&ranks)[ITEMS_PER_THREAD]) {                     \
    NAME(items, items, ranks);                                                                                         \
  }
  CUDA_ON_CPU_SCATTER(ScatterToBlocked, blocked)
  CUDA_ON_CPU_SCATTER(ScatterToStriped, striped)
#undef CUDA_ON_CPU_SCATTER

 private:
  T* slots_;
  Group group_;
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, int BINS, BlockHistogramAlgorithm ALGORITHM = BLOCK_HISTO_SORT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockHistogram {
  using Group = ::cuda_on_cpu::BlockGroup<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>;
  static constexpr int tile = Group::threads * ITEMS_PER_THREAD;

 public:
  using TempStorage = ::cuda_on_cpu::StorageOf<T, ALGORITHM == BLOCK_HISTO_SORT ? tile : 0>;
  CUDA_ON_CPU_INLINE explicit BlockHistogram(int line = __builtin_LINE())
      : storage_(::cuda_on_cpu::shared_variable<BlockHistogram, TempStorage, 0>("BlockHistogram")), group_{line} {}
  CUDA_ON_CPU_INLINE BlockHistogram(TempStorage& storage, int line = __builtin_LINE())
      : storage_(storage), group_{line} {}

  template <class CounterT>
  CUDA_ON_CPU_INLINE void InitHistogram(CounterT* histogram) {
    for (int bin = group_.rank(); bin < BINS; bin += Group::threads) histogram[bin] = 0;
  }
  template <class CounterT>
  CUDA_ON_CPU_INLINE void Composite(T (&items)[ITEMS_PER_THREAD], CounterT* histogram) {
    if constexpr (ALGORITHM == BLOCK_HISTO_ATOMIC) {
      for (T& item : items) atomicAdd(histogram + item, 1);
    } else {
      T* slots = storage_.template as<T>();
      for (int i = 0; i < ITEMS_PER_THREAD; ++i) slots[group_.rank() * ITEMS_PER_THREAD + i] = items[i];
      group_.sync();
      if (group_.rank() == 0)
        for (int i = 0; i < tile; ++i) histogram[slots[i]] += 1;
    }
  }
  template <class CounterT>
  CUDA_ON_CPU_INLINE void Histogram(T (&items)[ITEMS_PER_THREAD], CounterT* histogram) {
    InitHistogram(histogram);
    group_.sync();
    Composite(items, histogram);
  }

 private:
  TempStorage& storage_;
  Group group_;
};

}  // namespace cub
