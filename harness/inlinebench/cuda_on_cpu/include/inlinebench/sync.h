// Barriers, fences and warp operations.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "inlinebench/bfloat16.h"
#include "inlinebench/half.h"
#include "inlinebench/poison.h"
#include "inlinebench/runtime.h"

#define INLINEBENCH_LINE int line = __builtin_LINE()

inline void __syncthreads(INLINEBENCH_LINE) { inlinebench::block_barrier(inlinebench::BlockBarrier::sync, 0, line); }
inline int __syncthreads_count(int predicate, INLINEBENCH_LINE) {
  return inlinebench::block_barrier(inlinebench::BlockBarrier::count, predicate != 0, line);
}
inline int __syncthreads_and(int predicate, INLINEBENCH_LINE) {
  return inlinebench::block_barrier(inlinebench::BlockBarrier::all, predicate != 0, line);
}
inline int __syncthreads_or(int predicate, INLINEBENCH_LINE) {
  return inlinebench::block_barrier(inlinebench::BlockBarrier::any, predicate != 0, line);
}

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_acq_rel); }  // block scope: race_hooks.cpp
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { inlinebench::trap("__trap()"); }
inline void __brkpt() { inlinebench::trap("__brkpt()"); }

namespace inlinebench {

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
        poison(&mine->result, sizeof(T));
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

}  // namespace inlinebench

inline void __syncwarp(unsigned mask = 0xffffffffu, INLINEBENCH_LINE) {
  inlinebench::warp_collective(mask, nullptr, nullptr, "__syncwarp", line);
}

// For the types that CUDA has these functions for. Others are converted to one of them, or refused.
#define INLINEBENCH_SHUFFLES(T)                                                                                      \
  inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, INLINEBENCH_LINE) {                       \
    unsigned from = inlinebench::segment_start(width) + (static_cast<unsigned>(source) & (width - 1));               \
    return inlinebench::shuffle(mask, value, from, "__shfl_sync", line);                                             \
  }                                                                                                                  \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, INLINEBENCH_LINE) {                \
    unsigned me = inlinebench::lane(), start = inlinebench::segment_start(width);                                    \
    return inlinebench::shuffle(mask, value, me - start >= delta ? me - delta : me, "__shfl_up_sync", line);         \
  }                                                                                                                  \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, INLINEBENCH_LINE) {              \
    unsigned me = inlinebench::lane(), start = inlinebench::segment_start(width);                                    \
    bool inside = me - start + delta < static_cast<unsigned>(width);                                                 \
    return inlinebench::shuffle(mask, value, inside ? me + delta : me, "__shfl_down_sync", line);                    \
  }                                                                                                                  \
  /* A source lane in a later segment than the caller's gives the caller's own value; an earlier one is allowed. */  \
  inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, INLINEBENCH_LINE) {                \
    unsigned me = inlinebench::lane(), end = inlinebench::segment_start(width) + width;                              \
    unsigned from = (me ^ static_cast<unsigned>(lane_mask)) & 0xffffu;                                               \
    return inlinebench::shuffle(mask, value, from < end ? from : me, "__shfl_xor_sync", line);                       \
  }
INLINEBENCH_SHUFFLES(int)
INLINEBENCH_SHUFFLES(unsigned)
INLINEBENCH_SHUFFLES(long)
INLINEBENCH_SHUFFLES(unsigned long)
INLINEBENCH_SHUFFLES(long long)
INLINEBENCH_SHUFFLES(unsigned long long)
INLINEBENCH_SHUFFLES(float)
INLINEBENCH_SHUFFLES(double)
INLINEBENCH_SHUFFLES(__half)
INLINEBENCH_SHUFFLES(__half2)
INLINEBENCH_SHUFFLES(__nv_bfloat16)
INLINEBENCH_SHUFFLES(__nv_bfloat162)
#undef INLINEBENCH_SHUFFLES

inline unsigned __ballot_sync(unsigned mask, int predicate, INLINEBENCH_LINE) {
  inlinebench::Ballot post{predicate, 0};
  inlinebench::warp_collective(mask, &post, &inlinebench::Ballot::run, "__ballot_sync", line);
  return post.result;
}
inline int __any_sync(unsigned mask, int predicate, INLINEBENCH_LINE) {
  return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, INLINEBENCH_LINE) {
  return __ballot_sync(mask, !predicate, line) == 0;
}
inline unsigned __activemask(INLINEBENCH_LINE) { return inlinebench::active_mask(line); }

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, INLINEBENCH_LINE) {
  inlinebench::Match<T> post{value, 0, 0};
  inlinebench::warp_collective(mask, &post, &inlinebench::Match<T>::run, "__match_any_sync", line);
  return post.same;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_equal, INLINEBENCH_LINE) {
  inlinebench::Match<T> post{value, 0, 0};
  inlinebench::warp_collective(mask, &post, &inlinebench::Match<T>::run, "__match_all_sync", line);
  *all_equal = post.same == post.lanes;
  return *all_equal ? post.lanes : 0;
}

#define INLINEBENCH_REDUCE(NAME, T, OPERATOR)                                            \
  inline T NAME(unsigned mask, T value, INLINEBENCH_LINE) {                              \
    return inlinebench::warp_reduce<inlinebench::OPERATOR>(mask, value, #NAME, line);    \
  }
INLINEBENCH_REDUCE(__reduce_add_sync, int, Add)
INLINEBENCH_REDUCE(__reduce_add_sync, unsigned, Add)
INLINEBENCH_REDUCE(__reduce_min_sync, int, Min)
INLINEBENCH_REDUCE(__reduce_min_sync, unsigned, Min)
INLINEBENCH_REDUCE(__reduce_max_sync, int, Max)
INLINEBENCH_REDUCE(__reduce_max_sync, unsigned, Max)
INLINEBENCH_REDUCE(__reduce_and_sync, unsigned, And)
INLINEBENCH_REDUCE(__reduce_or_sync, unsigned, Or)
INLINEBENCH_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef INLINEBENCH_REDUCE
#undef INLINEBENCH_LINE
