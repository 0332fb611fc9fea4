// Launches whose blocks take turns, for the race detector: with one block after the other, the first one would take all
// work of a queue, and no two blocks would be seen at work on neighbouring parts.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace cuda_on_cpu {

// Some OS threads that run one at a time.
class Interleaving {
 public:
  // Runs `work` on each of the threads.
  void run(unsigned threads, const std::function<void()>& work);

  // Lets the other threads of the calling one's group run. Does nothing on other threads. Turns become rare after many, so
  // that a launch with a million atomics ends, but never stop: the calling block may wait for another one.
  static void yield();

 private:
  void pass_turn(unsigned from);

  static constexpr unsigned most_frequent = 500, rare = 64;

  std::mutex mutex_;
  std::deque<std::condition_variable> has_turn_;  // of each thread
  std::vector<bool> ended_;
  unsigned turn_ = 0, turns_ = 0, skipped_ = 0;
};

}  // namespace cuda_on_cpu
