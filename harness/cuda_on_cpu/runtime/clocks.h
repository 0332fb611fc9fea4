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
  std::uint32_t epoch = 0;                          // all accesses of the block in earlier epochs are known
  std::map<std::uint32_t, std::uint32_t> threads;   // of these threads also what is not later than a time
};
using Clock = std::map<std::uint32_t, KnownBlock>;  // by the block's number in the grid
using ClockPointer = std::shared_ptr<Clock>;        // shared while nobody changes it

void join(ClockPointer& into, const ClockPointer& from);

struct BlockClock;

struct ThreadClock {
  BlockClock* block;
  std::uint32_t number;  // in its block
  std::uint32_t time;
  std::uint32_t seen[lanes_of_warp];  // the time up to which each lane of the warp is known
  ClockPointer learned;               // through atomics
  ClockPointer pending;               // read by a relaxed load; learned at the next fence or barrier
  ClockPointer fence, block_fence;    // what the last fences publish: to the device, to the block

  std::uint32_t warp() const;
  std::uint32_t lane() const { return number % lanes_of_warp; }
  bool knows(const Access& access) const;
  bool knows_lane(const Access& access, std::uint32_t lane) const;
  void fence_now(bool block_scope);
};

struct BlockClock {
  std::uint32_t number = 0;
  std::uint32_t epoch = 1;
  std::uint32_t warps = 0;
  std::uint32_t first_warp = 0;
  bool learned = false;  // whether any thread learned anything through atomics since the last barrier
  std::vector<ThreadClock> threads;

  void begin(std::uint32_t number, std::uint32_t threads);
  void barrier();
  void warp_sync(unsigned warp, unsigned lanes);
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
