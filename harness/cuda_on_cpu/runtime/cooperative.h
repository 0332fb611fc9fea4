// Cooperative launches: all blocks of a grid are there at once, and meet at its barriers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace cuda_on_cpu {

// Runs each block on an OS thread of its own, one at a time: the next goes on where one waits for the others.
class CooperativeGrid {
 public:
  explicit CooperativeGrid(std::uint64_t blocks) : blocks_(blocks) {}

  void run(const std::function<void(std::uint64_t block)>& run_block);
  // Waits for all blocks; the last one to come runs `meeting` first. False if a block ended without coming.
  bool wait(const std::function<void()>& meeting);

 private:
  void end_block(std::unique_lock<std::mutex>& turn);

  std::uint64_t blocks_, arrived_ = 0, ended_ = 0, generation_ = 0;
  bool broken_ = false;
  std::mutex turn_;
  std::condition_variable changed_;
};

}  // namespace cuda_on_cpu
