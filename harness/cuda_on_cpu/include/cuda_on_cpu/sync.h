// Barriers, fences and warp operations.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/poison.h"
#include "cuda_on_cpu/runtime.h"

#define CUDA_ON_CPU_LINE int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_CPU_LINE) { cuda_on_cpu::block_barrier(cuda_on_cpu::BlockBarrier::sync, 0, line); }
inline int __syncthreads_count(int predicate, CUDA_ON_CPU_LINE) {
  return cuda_on_cpu::block_barrier(cuda_on_cpu::BlockBarrier::count, predicate != 0, line);
}
inline int __syncthreads_and(int predicate, CUDA_ON_CPU_LINE) {
  return cuda_on_cpu::block_barrier(cuda_on_cpu::BlockBarrier::all, predicate != 0, line);
}
inline int __syncthreads_or(int predicate, CUDA_ON_CPU_LINE) {
  return cuda_on_cpu::block_barrier(cuda_on_cpu::BlockBarrier::any, predicate != 0, line);
}

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_acq_rel); }  // block scope: race_hooks.cpp
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { cuda_on_cpu::trap("__trap()"); }
inline void __brkpt() { cuda_on_cpu::trap("__brkpt()"); }

namespace cuda_on_cpu {

// One lane's side of a shuffle. A lane that reads from a lane which takes no part gets a NaN pattern: on the hardware
// the value is undefined.
template <class T>
struct Shuffle {
  T value;
  T result;
  unsigned source;

  static void run(unsigned lanes, void* const* posts) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      auto* mine = static_cast<Shuffle*>(posts[lane]);
      if (lanes >> mine->source & 1)
        __builtin_memcpy(&mine->result, &static_cast<Shuffle*>(posts[mine->source])->value, sizeof(T));
      else
        poison(&mine->result, sizeof(T)), race_missing_lane(lane, mine->source);
    }
  }
};

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, const char* name, int line) {
  static_assert(std::is_trivially_copyable_v<T>, "a shuffle moves plain values");
  Shuffle<T> post{value, value, source};
  warp_collective(mask, &post, &Shuffle<T>::run, name, line);
  return post.result;
}

// Every participating lane gets the fold of all values, in the order of the lanes.
template <class T, class Operator>
struct Reduction {
  T value;

  static void run(unsigned lanes, void* const* posts) {
    Reduction* first = nullptr;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      auto* mine = static_cast<Reduction*>(posts[lane]);
      if (first)
        first->value = Operator()(first->value, mine->value);
      else
        first = mine;
    }
    for (unsigned lane = 0; lane < 32; ++lane)
      if (lanes >> lane & 1) static_cast<Reduction*>(posts[lane])->value = first->value;
  }
};

template <class Operator, class T>
inline T warp_reduce(unsigned mask, T value, const char* name, int line) {
  Reduction<T, Operator> post{value};
  warp_collective(mask, &post, &Reduction<T, Operator>::run, name, line);
  return post.value;
}

struct Ballot {
  int predicate;
  unsigned result;

  static void run(unsigned lanes, void* const* posts) {
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      if ((lanes >> lane & 1) && static_cast<Ballot*>(posts[lane])->predicate) votes |= 1u << lane;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (lanes >> lane & 1) static_cast<Ballot*>(posts[lane])->result = votes;
  }
};

template <class T>
struct Match {
  T value;
  unsigned same;
  unsigned lanes;

  static void run(unsigned lanes, void* const* posts) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      auto* mine = static_cast<Match*>(posts[lane]);
      mine->lanes = lanes;
      mine->same = 0;
      for (unsigned other = 0; other < 32; ++other)
        if ((lanes >> other & 1) && !std::memcmp(&static_cast<Match*>(posts[other])->value, &mine->value, sizeof(T)))
          mine->same |= 1u << other;
    }
  }
};

// The lane that a shuffle of segments of `width` lanes reads, or the caller's own lane where that is outside its segment.
inline unsigned segment_start(int width) { return lane() & ~static_cast<unsigned>(width - 1); }

struct Min {
  template <class T>
  T operator()(T a, T b) const { return b < a ? b : a; }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const { return a < b ? b : a; }
};
struct Add {
  template <class T>
  T operator()(T a, T b) const { return a + b; }
};
struct And {
  template <class T>
  T operator()(T a, T b) const { return a & b; }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const { return a | b; }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const { return a ^ b; }
};

}  // namespace cuda_on_cpu

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_CPU_LINE) {
  cuda_on_cpu::warp_collective(mask, nullptr, nullptr, "__syncwarp", line);
}

// For the types that CUDA has these functions for. Others are converted to one of them, or refused.
#define CUDA_ON_CPU_SHUFFLES(T)                                                                                      \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_CPU_LINE) {                       \
    unsigned from = cuda_on_cpu::segment_start(width) + (static_cast<unsigned>(source) & (width - 1));               \
    return cuda_on_cpu::shuffle(mask, value, from, "__shfl_sync", line);                                             \
  }                                                                                                                  \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_CPU_LINE) {                \
    unsigned me = cuda_on_cpu::lane(), start = cuda_on_cpu::segment_start(width);                                    \
    return cuda_on_cpu::shuffle(mask, value, me - start >= delta ? me - delta : me, "__shfl_up_sync", line);         \
  }                                                                                                                  \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_CPU_LINE) {              \
    unsigned me = cuda_on_cpu::lane(), start = cuda_on_cpu::segment_start(width);                                    \
    bool inside = me - start + delta < static_cast<unsigned>(width);                                                 \
    return cuda_on_cpu::shuffle(mask, value, inside ? me + delta : me, "__shfl_down_sync", line);                    \
  }                                                                                                                  \
  /* A source lane in a later segment than the caller's gives the caller's own value; an earlier one is allowed. */  \
  inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_ON_CPU_LINE) {                \
    unsigned me = cuda_on_cpu::lane(), end = cuda_on_cpu::segment_start(width) + width;                              \
    unsigned from = (me ^ static_cast<unsigned>(lane_mask)) & 0xffffu;                                               \
    return cuda_on_cpu::shuffle(mask, value, from < end ? from : me, "__shfl_xor_sync", line);                       \
  }
CUDA_ON_CPU_SHUFFLES(int)
CUDA_ON_CPU_SHUFFLES(unsigned)
CUDA_ON_CPU_SHUFFLES(long)
CUDA_ON_CPU_SHUFFLES(unsigned long)
CUDA_ON_CPU_SHUFFLES(long long)
CUDA_ON_CPU_SHUFFLES(unsigned long long)
CUDA_ON_CPU_SHUFFLES(float)
CUDA_ON_CPU_SHUFFLES(double)
CUDA_ON_CPU_SHUFFLES(__half)
CUDA_ON_CPU_SHUFFLES(__half2)
CUDA_ON_CPU_SHUFFLES(__nv_bfloat16)
CUDA_ON_CPU_SHUFFLES(__nv_bfloat162)
#undef CUDA_ON_CPU_SHUFFLES

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_LINE) {
  cuda_on_cpu::Ballot post{predicate, 0};
  cuda_on_cpu::warp_collective(mask, &post, &cuda_on_cpu::Ballot::run, "__ballot_sync", line);
  return post.result;
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_LINE) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_LINE) {
  return __ballot_sync(mask, !predicate, line) == 0;
}
inline unsigned __activemask(CUDA_ON_CPU_LINE) { return cuda_on_cpu::active_mask(line); }

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, CUDA_ON_CPU_LINE) {
  cuda_on_cpu::Match<T> post{value, 0, 0};
  cuda_on_cpu::warp_collective(mask, &post, &cuda_on_cpu::Match<T>::run, "__match_any_sync", line);
  return post.same;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_equal, CUDA_ON_CPU_LINE) {
  cuda_on_cpu::Match<T> post{value, 0, 0};
  cuda_on_cpu::warp_collective(mask, &post, &cuda_on_cpu::Match<T>::run, "__match_all_sync", line);
  *all_equal = post.same == post.lanes;
  return *all_equal ? post.lanes : 0;
}

#define CUDA_ON_CPU_REDUCE(NAME, T, OPERATOR)                                            \
  inline T NAME(unsigned mask, T value, CUDA_ON_CPU_LINE) {                              \
    return cuda_on_cpu::warp_reduce<cuda_on_cpu::OPERATOR>(mask, value, #NAME, line);    \
  }
CUDA_ON_CPU_REDUCE(__reduce_add_sync, int, Add)
CUDA_ON_CPU_REDUCE(__reduce_add_sync, unsigned, Add)
CUDA_ON_CPU_REDUCE(__reduce_min_sync, int, Min)
CUDA_ON_CPU_REDUCE(__reduce_min_sync, unsigned, Min)
CUDA_ON_CPU_REDUCE(__reduce_max_sync, int, Max)
CUDA_ON_CPU_REDUCE(__reduce_max_sync, unsigned, Max)
CUDA_ON_CPU_REDUCE(__reduce_and_sync, unsigned, And)
CUDA_ON_CPU_REDUCE(__reduce_or_sync, unsigned, Or)
CUDA_ON_CPU_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef CUDA_ON_CPU_REDUCE
#undef CUDA_ON_CPU_LINE
