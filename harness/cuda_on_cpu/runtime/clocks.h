// What each CUDA thread knows to have happened: vector clocks, compressed by the structure of a grid.
//
// A thread knows all accesses of its block before the last barrier; accesses of its warp's lanes up to the last
// __syncwarp() with them; and what it learned through fences and atomics, which is rare and kept in a sparse Clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cuda_on_cpu/vector_types.h"
#include "shadow.h"

namespace cuda_on_cpu {

constexpr unsigned lanes_of_warp = 32;

struct KnownBlock {
  using Times = std::vector<std::uint32_t>;
  std::uint32_t epoch = 0;         // all accesses of the block in earlier epochs are known
  std::shared_ptr<Times> threads;  // of each thread also what is not later than a time; shared while nobody changes it

  void join(const KnownBlock& other);
};
using Clock = std::map<std::uint32_t, KnownBlock>;  // by the block's number in the grid
using ClockPointer = std::shared_ptr<Clock>;        // shared while nobody changes it

void join(ClockPointer& into, const ClockPointer& from);

// What goes through fences of one scope.
struct Channel {
  ClockPointer fenced;  // what fences so far publish with later atomic writes
  ClockPointer loaded;  // observed by a load; learned at the next fence
  ClockPointer relied;  // the same by an update, or before a barrier (Finding::unfenced)

  void join(const Channel& other);
  void learn(ClockPointer& learned);
};

// What threads tell each other where they meet.
struct Knowledge {
  ClockPointer learned;
  Channel device, block;

  void join(const Knowledge& other);
  void pass_barrier();
};

// A named barrier or an mbarrier. Waiting for a phase tells what arrived in it and nothing of the next one, which other
// threads may have begun before the waiting one runs again.
struct Meeting {
  Knowledge arriving, complete;
};

struct BlockClock;

struct ThreadClock {
  BlockClock* block;
  std::uint32_t number;  // in its block
  std::uint32_t time;
  std::uint32_t seen[lanes_of_warp];  // the time up to which each lane of the warp is known
  Knowledge known;                    // through atomics, and from other warps

  std::uint32_t warp() const;
  std::uint32_t lane() const { return number % lanes_of_warp; }
  bool knows(const Access& access) const;
  bool made(const Access& access) const { return access.warp == warp() && access.lanes == 1u << lane(); }
  bool knows_lane(const Access& access, std::uint32_t lane) const;
  // Whether it would know the access if it had fenced after an atomic.
  bool lacks_only_a_fence(const Access& access) const;
  // Adds what it did and what it knows of its warp and block, and begins a new time.
  void tell(ClockPointer& into);
  void fence_now(bool block_scope, bool acquires, bool releases);
};

struct BlockClock {
  std::uint32_t number = 0;
  std::uint32_t epoch = 1;
  std::uint32_t warps = 0;
  std::uint32_t first_warp = 0;
  bool differs = false;  // whether any thread's `known` changed since the last barrier
  std::vector<ThreadClock> threads;
  std::unordered_map<const void*, Meeting> meetings;  // by the barrier

  void begin(std::uint32_t number, std::uint32_t threads);
  void barrier();
  void warp_sync(unsigned warp, unsigned lanes);
  // A relaxed arrival tells what fences published, and a relaxed wait learns at the next fence.
  void arrive(ThreadClock& thread, const void* barrier, bool relaxed);
  void complete(const void* barrier);
  void wait(ThreadClock& thread, const void* barrier, bool relaxed);
};

inline std::uint32_t ThreadClock::warp() const { return block->first_warp + number / lanes_of_warp; }

// What atomics carry from thread to thread, by their address.
class Published {
 public:
  void clear() { at_.clear(); }
  void store(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope);
  void load(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope);

 private:
  struct Entry {
    ClockPointer device, block;
    std::uint32_t block_number = 0;
  };
  std::unordered_map<std::uintptr_t, Entry> at_;
};

}  // namespace cuda_on_cpu
