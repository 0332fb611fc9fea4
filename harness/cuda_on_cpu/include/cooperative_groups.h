// Cooperative groups: grids, blocks, tiles and coalesced threads.
#pragma once

#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/sync.h"

namespace cooperative_groups {

#define CUDA_ON_CPU_LINE int line = __builtin_LINE()

namespace details {
inline unsigned block_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned warp_mask() {
  unsigned left = block_size() - (block_rank() & ~31u);
  return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}
// The rank of a lane: the number of set bits of the mask below it.
inline unsigned rank_in(unsigned mask) { return static_cast<unsigned>(__builtin_popcount(mask & ((1u << cuda_on_cpu::lane()) - 1))); }
// The lane that is the n-th set bit.
inline unsigned nth_lane(unsigned mask, unsigned n) {
  while (n--) mask &= mask - 1;
  return mask ? static_cast<unsigned>(__builtin_ctz(mask)) : cuda_on_cpu::lane();
}
}  // namespace details

class thread_block {
 public:
  static void sync(CUDA_ON_CPU_LINE) { __syncthreads(line); }
  static void barrier_arrive() = delete;
  static unsigned thread_rank() { return details::block_rank(); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};

// Some lanes of one warp, named by a mask.
class lane_group {
 public:
  explicit lane_group(unsigned mask) : mask_(mask) {}

  void sync(CUDA_ON_CPU_LINE) const { __syncwarp(mask_, line); }
  unsigned thread_rank() const { return details::rank_in(mask_); }
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned lane_mask() const { return mask_; }

  template <class T>
  T shfl(T value, int source, CUDA_ON_CPU_LINE) const {
    return cuda_on_cpu::shuffle(mask_, value, details::nth_lane(mask_, static_cast<unsigned>(source) % size()), "shfl", line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CUDA_ON_CPU_LINE) const {
    unsigned rank = thread_rank();
    return cuda_on_cpu::shuffle(mask_, value, details::nth_lane(mask_, rank >= delta ? rank - delta : rank), "shfl_up", line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CUDA_ON_CPU_LINE) const {
    unsigned rank = thread_rank();
    return cuda_on_cpu::shuffle(mask_, value, details::nth_lane(mask_, rank + delta < size() ? rank + delta : rank), "shfl_down", line);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, CUDA_ON_CPU_LINE) const {
    unsigned rank = thread_rank(), from = rank ^ bits;
    return cuda_on_cpu::shuffle(mask_, value, details::nth_lane(mask_, from < size() ? from : rank), "shfl_xor", line);
  }
  int any(int predicate, CUDA_ON_CPU_LINE) const { return __any_sync(mask_, predicate, line); }
  int all(int predicate, CUDA_ON_CPU_LINE) const { return __all_sync(mask_, predicate, line); }
  // Bits are ranks in the group.
  unsigned ballot(int predicate, CUDA_ON_CPU_LINE) const { return packed(__ballot_sync(mask_, predicate, line)); }
  template <class T>
  unsigned match_any(T value, CUDA_ON_CPU_LINE) const { return packed(__match_any_sync(mask_, value, line)); }
  template <class T>
  unsigned match_all(T value, int& all_equal, CUDA_ON_CPU_LINE) const { return packed(__match_all_sync(mask_, value, &all_equal, line)); }

 private:
  unsigned packed(unsigned lanes) const {
    unsigned bits = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, ++rank)
      if (lanes >> __builtin_ctz(left) & 1) bits |= 1u << rank;
    return bits;
  }

  unsigned mask_;
};

// The lanes of one tile of `size` in a warp, whatever the block's last warp lacks of them.
inline unsigned tile_mask(unsigned size) {
  unsigned ones = size >= 32 ? 0xffffffffu : (1u << size) - 1;
  return (ones << (cuda_on_cpu::lane() & ~(size - 1))) & details::warp_mask();
}

template <unsigned Size, class Parent = void>
class thread_block_tile : public lane_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "on the CPU a tile is at most a warp");

 public:
  thread_block_tile() : lane_group(tile_mask(Size)) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>& tile) : lane_group(tile) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return cuda_on_cpu::lane() & (Size - 1); }
  static unsigned meta_group_rank() { return details::block_rank() / Size; }
  static unsigned meta_group_size() { return (details::block_size() + Size - 1) / Size; }
};

class coalesced_group : public lane_group {
 public:
  using lane_group::lane_group;
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
};

// A block or some lanes of a warp, told apart at run time.
class thread_group {
 public:
  thread_group(const thread_block&) : mask_(0) {}
  thread_group(const lane_group& group) : mask_(group.lane_mask()) {}
  void sync(CUDA_ON_CPU_LINE) const { mask_ ? __syncwarp(mask_, line) : __syncthreads(line); }
  unsigned thread_rank() const { return mask_ ? details::rank_in(mask_) : details::block_rank(); }
  unsigned size() const { return mask_ ? static_cast<unsigned>(__builtin_popcount(mask_)) : details::block_size(); }
  unsigned num_threads() const { return size(); }

 private:
  unsigned mask_;
};

class grid_group {
 public:
  static bool is_valid() { return true; }
  static void sync(CUDA_ON_CPU_LINE) { cuda_on_cpu::block_barrier(cuda_on_cpu::BlockBarrier::grid, 0, line); }
  static unsigned long long thread_rank() { return block_rank() * details::block_size() + details::block_rank(); }
  static unsigned long long size() { return num_blocks() * details::block_size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() { return (1ull * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
inline coalesced_group coalesced_threads(CUDA_ON_CPU_LINE) { return coalesced_group(__activemask(line)); }

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }
inline coalesced_group tiled_partition(const thread_block&, unsigned size) { return coalesced_group(tile_mask(size)); }
inline coalesced_group tiled_partition(const lane_group&, unsigned size) { return coalesced_group(tile_mask(size)); }

// The lanes of the group whose label or predicate is the caller's.
template <class Label>
inline coalesced_group labeled_partition(const lane_group& group, Label label, CUDA_ON_CPU_LINE) {
  return coalesced_group(__match_any_sync(group.lane_mask(), label, line));
}
inline coalesced_group binary_partition(const lane_group& group, bool predicate, CUDA_ON_CPU_LINE) {
  return coalesced_group(__match_any_sync(group.lane_mask(), static_cast<int>(predicate), line));
}

template <class Group>
inline void sync(const Group& group, CUDA_ON_CPU_LINE) { group.sync(line); }
template <class Group>
inline unsigned thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group>
inline unsigned group_size(const Group& group) { return group.size(); }

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

namespace details {
// What every lane posts for a fold: its value and how to combine two.
template <class T, class Operator>
struct Fold {
  T value;
  const Operator* combine;
  enum Kind { reduction, inclusive } kind;

  static void run(unsigned lanes, void* const* posts) {
    Fold* last = nullptr;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      auto* mine = static_cast<Fold*>(posts[lane]);
      if (last) mine->value = (*mine->combine)(last->value, mine->value);
      last = mine;
    }
    if (last->kind == inclusive) return;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (lanes >> lane & 1) static_cast<Fold*>(posts[lane])->value = last->value;
  }
};
template <class T, class Operator>
inline T fold(const lane_group& group, T value, const Operator& combine, typename Fold<T, Operator>::Kind kind, const char* name, int line) {
  Fold<T, Operator> post{value, &combine, kind};
  cuda_on_cpu::warp_collective(group.lane_mask(), &post, &Fold<T, Operator>::run, name, line);
  return post.value;
}
}  // namespace details

template <class T, class Operator>
inline T reduce(const lane_group& group, T value, const Operator& combine, CUDA_ON_CPU_LINE) {
  return details::fold(group, value, combine, details::Fold<T, Operator>::reduction, "reduce", line);
}
template <class T, class Operator>
inline T inclusive_scan(const lane_group& group, T value, const Operator& combine, CUDA_ON_CPU_LINE) {
  return details::fold(group, value, combine, details::Fold<T, Operator>::inclusive, "inclusive_scan", line);
}
template <class T>
inline T inclusive_scan(const lane_group& group, T value, CUDA_ON_CPU_LINE) {
  return inclusive_scan(group, value, plus<T>(), line);
}
template <class T, class Operator>
inline T exclusive_scan(const lane_group& group, T value, const Operator& combine, CUDA_ON_CPU_LINE) {
  T before = group.shfl_up(inclusive_scan(group, value, combine, line), 1, line);
  return group.thread_rank() ? before : T();
}
template <class T>
inline T exclusive_scan(const lane_group& group, T value, CUDA_ON_CPU_LINE) {
  return exclusive_scan(group, value, plus<T>(), line);
}

// A copy by the whole group: each thread copies its share at once. `wait` is the barrier that makes it visible.
template <class Group, class T>
CUDA_ON_CPU_INLINE void memcpy_async(const Group& group, T* to, const T* from, std::size_t bytes) {
  auto* target = reinterpret_cast<char*>(to);
  auto* source = reinterpret_cast<const char*>(from);
  for (std::size_t i = group.thread_rank(); i < bytes; i += group.size()) target[i] = source[i];
}
template <class Group>
inline void wait(const Group& group, CUDA_ON_CPU_LINE) { group.sync(line); }
template <unsigned, class Group>
inline void wait_prior(const Group& group, CUDA_ON_CPU_LINE) { group.sync(line); }

#undef CUDA_ON_CPU_LINE

}  // namespace cooperative_groups
