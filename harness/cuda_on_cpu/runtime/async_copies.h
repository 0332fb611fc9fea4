// The asynchronous copies of a block's threads that have not arrived yet.
#pragma once

#include <cstddef>
#include <vector>

namespace cuda_on_cpu {

class AsyncCopies {
 public:
  void clear(std::size_t threads);
  // `pc` is the place in the source.
  void add(unsigned thread, void* to, const void* from, std::size_t bytes, std::size_t copied, void* pc);
  void commit(unsigned thread) { ++threads_[thread].groups; }
  // Makes the copies of all groups except the newest ones.
  void wait(unsigned thread, unsigned newest);
  void finish(unsigned thread);

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, copied;
    void* pc;
    unsigned group;
  };
  struct Thread {
    std::vector<Copy> pending;
    unsigned groups = 0;
  };

  static void make(const Copy& copy);

  std::vector<Thread> threads_;
};

}  // namespace cuda_on_cpu
