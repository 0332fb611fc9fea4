// Operations of warps, barriers and mbarriers of inline PTX.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/async_copies.h"
#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/refuse.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/sync.h"

namespace cuda_on_cpu::ptx {

enum class Shuffling { idx, up, down, bfly };
struct Shuffled {
  std::uint32_t value;
  bool inside;  // whether the other lane is in the segment; if not, the value is the lane's own
};

inline Shuffled shuffle(
    const char* name, Shuffling mode, std::uint32_t value, std::uint32_t other, std::uint32_t clamp, std::uint32_t mask,
    int line = __builtin_LINE()) {
  const int me = static_cast<int>(lane()), by = static_cast<int>(other & 31);
  const int segment = static_cast<int>(clamp >> 8 & 31), low = me & segment;
  const int limit = low | (static_cast<int>(clamp & 31) & ~segment);
  int from = me;
  switch (mode) {
    case Shuffling::idx: from = low | (by & ~segment); break;
    case Shuffling::up: from = me - by; break;
    case Shuffling::down: from = me + by; break;
    case Shuffling::bfly: from = me ^ by; break;
  }
  const bool inside = mode == Shuffling::up ? from >= limit : from <= limit;
  return {cuda_on_cpu::shuffle(mask, value, static_cast<unsigned>(inside ? from : me), name, line), inside};
}

inline bool vote_uni(unsigned mask, bool predicate, int line = __builtin_LINE()) {
  Match<bool> post{predicate, 0, 0};
  warp_collective(mask, &post, &Match<bool>::run, "vote.sync.uni", line);
  return post.same == post.lanes;
}

inline std::uint32_t elect(unsigned mask, int line = __builtin_LINE()) {
  Match<bool> post{true, 0, 0};
  warp_collective(mask, &post, &Match<bool>::run, "elect.sync", line);
  return static_cast<std::uint32_t>(__builtin_ctz(post.lanes));
}

// A barrier of the whole block, or of as many of its threads as `count` says.
inline void barrier_sync(std::uint32_t number, std::uint32_t count = 0, int line = __builtin_LINE()) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  if (number == 0 && (count == 0 || count == threads)) block_barrier(BlockBarrier::sync, 0, line);
  else named_barrier(number, count ? count : threads, true, line);
}
inline void barrier_arrive(std::uint32_t number, std::uint32_t count, int line = __builtin_LINE()) {
  named_barrier(number, count, false, line);
}

// The 8 bytes of an mbarrier. A phase is complete when no arrivals and no bytes are pending. Its two highest bits tell
// it from memory that was not initialised.
struct Phase {
  static constexpr std::uint64_t mark = 2;
  std::uint64_t odd : 1, expected : 20, pending : 20;
  std::int64_t bytes : 21;
  std::uint64_t initialised : 2;
};
static_assert(sizeof(Phase) == 8);

CUDA_ON_CPU_UNSEEN Phase& phase_at(std::uint64_t address, int line) {
  require_aligned(shared(address), 8);
  auto* phase = reinterpret_cast<Phase*>(shared(address));
  if (phase->initialised != Phase::mark) refuse("the mbarrier was not initialised", "mbarrier", line);
  return *phase;
}
CUDA_ON_CPU_UNSEEN void complete_phase(Phase& phase) {
  const bool complete = phase.pending == 0 && phase.bytes == 0;
  if (complete) phase.odd ^= 1, phase.pending = phase.expected;
  mbarrier_changed(complete ? &phase : nullptr);
}

CUDA_ON_CPU_UNSEEN void mbarrier_init(std::uint64_t address, std::uint32_t count, int line = __builtin_LINE()) {
  require_aligned(shared(address), 8);
  if (count == 0 || count >= 1u << 20) refuse("an mbarrier expects 1 to 1048575 arrivals", "mbarrier.init", line);
  *reinterpret_cast<Phase*>(shared(address)) = {0, count, count, 0, Phase::mark};
  race_begin_phases(shared(address));
  mbarrier_changed(nullptr);
}
CUDA_ON_CPU_UNSEEN void mbarrier_invalidate(std::uint64_t address, int line = __builtin_LINE()) {
  phase_at(address, line).initialised = 0;
}
CUDA_ON_CPU_UNSEEN void mbarrier_expect(std::uint64_t address, std::uint32_t bytes, int line = __builtin_LINE()) {
  phase_at(address, line).bytes += bytes;
}
// Gives the state of the phase before the arrival.
CUDA_ON_CPU_UNSEEN std::uint64_t mbarrier_arrive(
    std::uint64_t address, std::uint32_t count, std::uint32_t bytes, bool relaxed, int line = __builtin_LINE()) {
  Phase& phase = phase_at(address, line);
  const Phase before = phase;
  race_arrive(&phase, relaxed);
  if (count > phase.pending) refuse("more arrivals than the mbarrier expects", "mbarrier.arrive", line);
  phase.bytes += bytes;
  phase.pending -= count;
  complete_phase(phase);
  return bits_as<std::uint64_t>(before);
}
// The thread's copies that are under way count as one more arrival, or without `counted` as an expected one.
template <bool counted>
CUDA_ON_CPU_UNSEEN void arrive_after_copies(std::uint64_t address, int line = __builtin_LINE()) {
  attach_copies(&phase_at(address, line));
  if (counted) race_arrive(&phase_at(address, line), false);
  else mbarrier_arrive(address, 1, 0, false, line);
}
// `which` is the parity of a phase, or the state that an arrival gave. Other threads run until the phase is complete.
// False if that takes this thread.
template <bool parity, bool relaxed>
CUDA_ON_CPU_UNSEEN bool mbarrier_wait(
    std::uint64_t address, std::conditional_t<parity, std::uint32_t, std::uint64_t> which, int line = __builtin_LINE()) {
  bool waits = true;
  while (waits && phase_at(address, line).odd == (which & 1)) waits = wait_for_phase(line);
  const bool complete = phase_at(address, line).odd != (which & 1);
  if (complete) race_wait(shared(address), relaxed);
  return complete;
}

}  // namespace cuda_on_cpu::ptx
