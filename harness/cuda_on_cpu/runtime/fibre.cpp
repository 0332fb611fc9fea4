#include "fibre.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace cuda_on_cpu {

namespace {

constexpr std::size_t guard_bytes = 4096;
constexpr std::size_t stack_bytes = 256 * 1024;  // touched page by page, so what is unused costs address space only

}  // namespace

#if defined(__x86_64__) && !defined(CUDA_ON_CPU_UCONTEXT)

// Only the registers that a function has to preserve: to the compiler this is a call like any other.
asm(R"(
.text
.p2align 4
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");
extern "C" void cuda_on_cpu_switch(void** from, void** to) __attribute__((visibility("hidden")));

void switch_context(Context& from, Context& to) { cuda_on_cpu_switch(&from.stack_pointer, &to.stack_pointer); }

void FibrePool::prepare(Fibre& fibre) {
  // Without the colour all stacks would start at the same offset in a page and fight for the same cache sets.
  auto top = reinterpret_cast<std::uintptr_t>(fibre.stack_low + stack_bytes - fibre.colour) & ~std::uintptr_t{15};
  auto* slot = reinterpret_cast<void**>(top);
  *--slot = nullptr;  // the entry function never returns; a debugger's backtrace ends here
  *--slot = reinterpret_cast<void*>(entry_);
  for (int saved = 0; saved < 6; ++saved) *--slot = nullptr;
  fibre.context.stack_pointer = slot;
}

#else

void switch_context(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

void FibrePool::prepare(Fibre& fibre) {
  getcontext(&fibre.context.state);
  fibre.context.state.uc_stack.ss_sp = fibre.stack_low;
  fibre.context.state.uc_stack.ss_size = stack_bytes - fibre.colour;
  fibre.context.state.uc_link = nullptr;
  makecontext(&fibre.context.state, entry_, 0);
}

#endif

Fibre* FibrePool::take() {
  if (free_.empty()) {
    void* area = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) throw std::bad_alloc();
    mprotect(area, guard_bytes, PROT_NONE);
    auto* fibre = new Fibre;
    fibre->stack_low = static_cast<char*>(area) + guard_bytes;
    fibre->colour = all_.size() % 32 * 192;
    prepare(*fibre);
    all_.push_back(fibre);
    free_.push_back(fibre);
  }
  Fibre* fibre = free_.back();
  free_.pop_back();
  return fibre;
}

void FibrePool::reset() {
  free_.clear();
  for (Fibre* fibre : all_) {
    prepare(*fibre);
    free_.push_back(fibre);
  }
}

bool FibrePool::in_guard(const void* address) const {
  auto* byte = static_cast<const char*>(address);
  for (const Fibre* fibre : all_)
    if (byte >= fibre->stack_low - guard_bytes && byte < fibre->stack_low) return true;
  return false;
}

FibrePool::~FibrePool() {
  for (Fibre* fibre : all_) {
    munmap(fibre->stack_low - guard_bytes, guard_bytes + stack_bytes);
    delete fibre;
  }
}

}  // namespace cuda_on_cpu
