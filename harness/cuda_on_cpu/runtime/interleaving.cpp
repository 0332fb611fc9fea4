#include "interleaving.h"

#include <thread>

namespace cuda_on_cpu {

namespace {

thread_local Interleaving* group = nullptr;
thread_local unsigned own_number = 0;

}  // namespace

void Interleaving::run(unsigned threads, const std::function<void()>& work) {
  ended_.assign(threads, false);
  has_turn_.resize(threads);
  std::vector<std::thread> running;
  for (unsigned number = 0; number < threads; ++number)
    running.emplace_back([this, number, &work] {
      group = this;
      own_number = number;
      std::unique_lock lock(mutex_);
      has_turn_[number].wait(lock, [&] { return turn_ == number; });
      lock.unlock();
      work();
      lock.lock();
      ended_[number] = true;
      pass_turn(number);
    });
  for (std::thread& thread : running) thread.join();
}

void Interleaving::yield() {
  Interleaving* all = group;
  if (!all) return;
  std::unique_lock lock(all->mutex_);
  if (all->turns_ >= most_frequent && ++all->skipped_ % rare) return;
  ++all->turns_;
  all->pass_turn(own_number);
  all->has_turn_[own_number].wait(lock, [all] { return all->turn_ == own_number; });
}

void Interleaving::pass_turn(unsigned from) {
  for (unsigned next = 1; next <= ended_.size(); ++next) {
    turn_ = (from + next) % static_cast<unsigned>(ended_.size());
    if (!ended_[turn_]) break;
  }
  has_turn_[turn_].notify_one();
}

}  // namespace cuda_on_cpu
