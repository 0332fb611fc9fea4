// A stack of its own for a CUDA thread, and the switch between two of them.
//
// A fibre never changes its OS thread, so thread-local variables may be used across switches.
#pragma once

#include <cstddef>
#include <vector>

#if !defined(__x86_64__) || defined(CUDA_ON_CPU_UCONTEXT)
#include <ucontext.h>
#endif

namespace cuda_on_cpu {

// A place to go on from. The x86-64 one is a stack pointer: six saved registers and a return address lie there.
struct Context {
#if defined(__x86_64__) && !defined(CUDA_ON_CPU_UCONTEXT)
  void* stack_pointer = nullptr;
#else
  ucontext_t state;
#endif
};

// Leaves the running context in `from` and goes on from `to`. No system call on x86-64.
void switch_context(Context& from, Context& to);

struct Fibre {
  Context context;
  char* stack_low = nullptr;
  std::size_t colour = 0;
};

// Stacks of one OS thread, each with a guard page below, kept for reuse.
class FibrePool {
 public:
  using Entry = void (*)();

  explicit FibrePool(Entry entry) : entry_(entry) {}
  FibrePool(const FibrePool&) = delete;
  FibrePool& operator=(const FibrePool&) = delete;
  ~FibrePool();

  Fibre* take();
  void give(Fibre* fibre) { free_.push_back(fibre); }
  // Abandons whatever the fibres were doing: all are free and start anew.
  void reset();
  // True where the address lies in the guard page of one of the stacks.
  bool in_guard(const void* address) const;

 private:
  void prepare(Fibre& fibre);

  Entry entry_;
  std::vector<Fibre*> all_;
  std::vector<Fibre*> free_;
};

}  // namespace cuda_on_cpu
