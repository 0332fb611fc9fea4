// The asynchronous copies of a block's threads that were not waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

struct AsyncCopy {
  void* to;
  const void* from;
  std::size_t bytes, copied;  // what is not copied of the bytes is set to 0
  void* pc;                   // the place in the source

  // Whether other bytes than there are would be written.
  bool replaces() const;
  void make() const;
};

// A time of a thread, for the race detector.
struct Moment {
  std::uint32_t epoch, time;
};

class AsyncCopies {
 public:
  void clear(std::size_t threads);
  // Makes the copy at once, or as late as possible.
  void add(unsigned thread, const AsyncCopy& copy, bool at_once);
  void commit(unsigned thread) { ++threads_[thread].groups; }
  // Waits for all groups except the newest ones.
  void wait(unsigned thread, unsigned newest);
  // From here on, the thread's copies so far end with the current phase of the mbarrier.
  void attach(unsigned thread, const void* barrier);
  void complete(const void* barrier);
  void finish(unsigned thread);

 private:
  struct Pending {
    AsyncCopy copy;
    unsigned group;
    bool made;
  };
  struct Attachment {
    const void* barrier;
    std::size_t copies;  // how many the thread had started
    Moment moment;
  };
  struct Thread {
    std::vector<Pending> pending;  // in the order of their start, which is that of their end
    std::size_t ended = 0;
    unsigned groups = 0;
    std::vector<Attachment> attached;
  };

  void end(unsigned thread, std::size_t copies);

  std::vector<Thread> threads_;
  bool attached_ = false;  // whether any thread has attachments
};

}  // namespace cuda_on_cpu
