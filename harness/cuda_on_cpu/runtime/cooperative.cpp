#include "cooperative.h"

#include <thread>
#include <vector>

namespace cuda_on_cpu {

namespace {

thread_local std::unique_lock<std::mutex>* own_turn;

}  // namespace

void CooperativeGrid::run(const std::function<void(std::uint64_t)>& run_block) {
  std::vector<std::thread> threads;
  for (std::uint64_t nth = 0; nth < blocks_; ++nth)
    threads.emplace_back([this, nth, &run_block] {
      std::unique_lock turn(turn_);
      own_turn = &turn;
      run_block(nth);
      end_block(turn);
    });
  for (std::thread& thread : threads) thread.join();
}

// The thread stays until all blocks have ended, so that no other block's memory gets the addresses of this one's.
void CooperativeGrid::end_block(std::unique_lock<std::mutex>& turn) {
  ++ended_;
  broken_ |= arrived_ > 0;
  changed_.notify_all();
  changed_.wait(turn, [this] { return ended_ == blocks_; });
}

bool CooperativeGrid::wait(const std::function<void()>& meeting) {
  broken_ |= ended_ > 0;
  if (broken_) return false;
  if (++arrived_ == blocks_) {
    meeting();
    arrived_ = 0;
    ++generation_;
    changed_.notify_all();
    return true;
  }
  changed_.wait(*own_turn, [this, seen = generation_] { return generation_ != seen || broken_; });
  return !broken_;
}

}  // namespace cuda_on_cpu
