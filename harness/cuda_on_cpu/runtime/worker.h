// One OS thread that runs blocks: the scheduler of a block's CUDA threads.
//
// CUDA threads run one after the other on one fibre, as a plain loop, for as long as none of them waits. The first that
// waits (at a barrier or a warp operation) keeps the fibre; another fibre goes on with the threads that did not start yet.
// So a kernel without barriers costs no switch at all, and nothing has to be known about a kernel beforehand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "async_copies.h"
#include "clocks.h"
#include "cooperative.h"
#include "fibre.h"
#include "cuda_on_cpu/poison.h"
#include "cuda_on_cpu/runtime.h"
#include "memory.h"

namespace cuda_on_cpu {

std::string text_of(const dim3& size);  // "(4, 1, 1)"
// "`out` (global)", by the name that the launch gives the argument, or "global memory".
std::string name_global(const char* byte, const LaunchInfo& info);

// What all workers of a launch have in common.
struct Job {
  const LaunchInfo* info;
  Body body;
  const void* closure;
  bool reversed;  // the second schedule: threads of a block in descending order
  bool races;     // whether to look for data races
  CooperativeGrid* cooperative = nullptr;  // null for an ordinary launch
};

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // The worker of the calling OS thread; made at first use.
  static Worker& current();
  // The same without making one; null where there is none. For the fault handler.
  static Worker* existing();

  void begin(const Job& job);
  // Runs one block; gives what went wrong, or an empty string.
  std::string run_block(uint3 block);
  void end();

  // Called by CUDA threads.
  bool next_thread();
  int block_barrier(BlockBarrier kind, int value, int line);
  void named_barrier(unsigned number, unsigned count, bool waits, int line);
  bool wait_for_phase(int line);
  void mbarrier_changed(const void* complete);
  void warp_collective(unsigned mask, void* post, WarpOperation operation, const char* name, int line);
  unsigned active_mask(int line);
  void missing_lane(unsigned lane, unsigned missing) const;
  unsigned lane() const { return running_ & 31; }
  unsigned running() const { return running_; }
  AsyncCopies& copies() { return copies_; }
  void* shared_allocate(std::size_t bytes, std::size_t alignment, const char* name);
  void* dynamic_shared() const { return dynamic_; }
  std::size_t dynamic_shared_bytes() const { return job_ ? job_->info->shared_bytes : 0; }

  const Job* job() const { return job_; }
  // What shared memory holds before it is written: NaN patterns, and large numbers in the second order of threads,
  // because fmaxf and the like drop a NaN.
  std::uint64_t shared_poison() const { return job_->reversed ? large_poison : plain_poison; }
  bool in_shared(const char* byte) const { return static_area_.holds(byte) || dynamic_area_.holds(byte); }
  // The array in shared memory that contains the byte, or the nearest one.
  Extent shared_array(const char* byte) const;
  // "`held` (shared)", for messages.
  std::string name_memory(const void* address) const;
  // "4 bytes past the end of `held` (shared), which has 128 bytes", for a byte outside.
  std::string describe_outside(const char* byte, const Extent& array) const;
  // Where an address lies that cannot be accessed.
  std::string describe_fault(const void* address) const;

 private:
  enum class State { running, ready, block_barrier, warp, converging, phase, exited };

  static constexpr std::size_t canary = 64;  // bytes around each array in shared memory

  struct Thread {
    Fibre* fibre;
    State state;
    int line;
    unsigned mask;
    void* post;
    WarpOperation operation;
    const char* name;
    unsigned result;
  };

  struct Warp {
    unsigned alive = 0;       // lanes that have not returned, started or not
    unsigned waiting = 0;     // lanes inside a warp operation
    unsigned converging = 0;  // lanes inside __activemask
  };

  struct Barrier {
    unsigned arrived = 0;
    BlockBarrier kind{};
    int line = 0;
    int count = 0;
    int result = 0;
  };

  struct NamedBarrier {
    unsigned count = 0;
    unsigned arrived = 0;
    std::vector<unsigned> waiting;
  };

  struct SharedVariable {
    char* data;
    std::size_t bytes;
    const char* name;
  };

  static void fibre_main();

  void start(unsigned thread, Fibre* fibre);
  void make_current(unsigned thread);
  void make_ready(unsigned thread);
  Fibre* next_runnable();
  void park();
  void leave_fibre();
  void thread_exited();
  void release_barrier();
  void meet_other_blocks();
  bool complete_warp_operation(unsigned warp, unsigned mask, WarpOperation operation, int except);
  bool release_converging();
  bool wake_phase_waiters(bool complete);
  [[noreturn]] void fail(std::string message);
  std::string divergence() const;
  void poison_dynamic();
  std::string find_shared_overrun() const;
  std::string place() const;

  const Job* job_ = nullptr;
  unsigned threads_in_block_ = 0;
  std::vector<uint3> index_;  // of each thread, in the order of the ranks
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> ready_;  // a queue: taken at ready_head_, appended at the end
  std::size_t ready_head_ = 0;
  std::vector<unsigned> at_barrier_;
  Barrier barrier_;
  BlockClock clock_;  // for data races
  NamedBarrier named_barriers_[16];
  std::vector<unsigned> at_phase_;  // threads that wait for the phase of an mbarrier
  bool progress_ = false;           // whether what they wait for may have come nearer since they were last woken
  AsyncCopies copies_;
  unsigned started_ = 0;
  unsigned alive_ = 0;
  unsigned running_ = 0;
  std::string error_;

  FibrePool fibres_;
  Fibre* fibre_ = nullptr;
  Context scheduler_;

  GuardedArea static_area_;
  char* static_top_ = nullptr;
  std::size_t static_bytes_ = 0;
  std::vector<SharedVariable> shared_variables_;
  GuardedArea dynamic_area_;
  char* dynamic_ = nullptr;
  bool dynamic_used_ = false;

  char* signal_stack_ = nullptr;
};

}  // namespace cuda_on_cpu
