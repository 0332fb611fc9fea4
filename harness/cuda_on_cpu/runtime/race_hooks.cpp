// The functions that code compiled with -fsanitize=thread calls: here they are the race detector's. The code is linked
// without that flag, so that libtsan is not.
//
// The memory orders of atomics tell their scope: sequentially consistent is the device's, acquire-release the block's, and
// for loads and stores, which cannot have that order, relaxed.
// A compare-and-swap whose failure order is relaxed is one step of an update that accumulates, and an acquiring load is
// the step before one, which does not count (atomics.h).
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <vector>

#include "interleaving.h"
#include "races.h"

namespace cuda_on_cpu {

CUDA_ON_CPU_TLS void* runtime_access;

namespace {

struct Module {
  std::uintptr_t base, low, high;
};
std::vector<Module>& modules() {
  static auto* all = new std::vector<Module>;
  return *all;
}

// What is known of an update besides its kind.
struct Update {
  bool accumulates = false, overwrites = false, keeps = false;
};

void on_atomic(const volatile void* data, std::size_t bytes, Kind kind, int order, Update update, void* pc) {
  runtime_access = pc;
  ThreadClock* thread = race_thread;
  if (!thread) return;
  if (kind == Kind::update) Interleaving::yield();
  Access access(pc, kind, __builtin_ctzll(bytes));
  access.block_scope = order == __ATOMIC_ACQ_REL || order == __ATOMIC_RELAXED;
  access.accumulates = update.accumulates && !update.keeps;
  access.overwrites = update.overwrites;
  access.keeps = update.keeps;
  RaceDetector::instance().access(*thread, const_cast<const void*>(data), bytes, access);
}

}  // namespace

// Apart from race_access, which is inlined into the instrumentation's calls: outside of race calls they only return.
__attribute__((noinline)) void remember_access(
    ThreadClock& thread, const void* data, std::size_t bytes, Kind kind, void* pc) {
  Access access(pc, kind, is_atomic(kind) ? __builtin_ctzll(bytes) : 0);
  if (kind == Kind::atomic_write) access.overwrites = 1;
  RaceDetector::instance().access(thread, data, bytes, access);
}

void race_read_only(const void* data, std::size_t bytes) {
  ThreadClock* thread = race_thread;
  if (!thread) return;
  Access access(__builtin_return_address(0), Kind::read);
  access.read_only = 1;
  RaceDetector::instance().access(*thread, data, bytes, access);
}

void add_instrumented_module(const void* code) {
  Dl_info info{};
  if (!dladdr(code, &info)) return;
  auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  for (const Module& module : modules())
    if (module.base == base) return;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* wanted) {
        auto code_address = reinterpret_cast<std::uintptr_t>(wanted);
        bool found = false;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          std::uintptr_t low = object->dlpi_addr + part.p_vaddr;
          found |= part.p_type == PT_LOAD && code_address >= low && code_address < low + part.p_memsz;
        }
        for (int i = 0; found && i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          std::uintptr_t low = object->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_LOAD && part.p_flags & PF_W)
            modules().push_back({reinterpret_cast<std::uintptr_t>(wanted), low, low + part.p_memsz});
        }
        return static_cast<int>(found);
      },
      const_cast<void*>(code));
  for (Module& module : modules())
    if (module.base == reinterpret_cast<std::uintptr_t>(code)) module.base = base;
}

bool in_instrumented_module(std::uintptr_t address) {
  for (const Module& module : modules())
    if (address >= module.low && address < module.high) return true;
  return false;
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::Kind;
using cuda_on_cpu::race_access;
using cuda_on_cpu::on_atomic;
#define PC __builtin_extract_return_addr(__builtin_return_address(0))

extern "C" {

void __tsan_init() { cuda_on_cpu::add_instrumented_module(PC); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define PLAIN(N)                                                                                        \
  void __tsan_read##N(const void* data) { race_access(data, N, Kind::read, PC); }                         \
  void __tsan_write##N(const void* data) { race_access(data, N, Kind::write, PC); }                       \
  void __tsan_volatile_read##N(const void* data) { race_access(data, N, Kind::atomic_read, PC); }         \
  void __tsan_volatile_write##N(const void* data) { race_access(data, N, Kind::atomic_write, PC); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
#define UNALIGNED(N)                                                                                            \
  void __tsan_unaligned_read##N(const void* data) { race_access(data, N, Kind::read, PC); }                       \
  void __tsan_unaligned_write##N(const void* data) { race_access(data, N, Kind::write, PC); }                     \
  void __tsan_unaligned_volatile_read##N(const void* data) { race_access(data, N, Kind::atomic_read, PC); }       \
  void __tsan_unaligned_volatile_write##N(const void* data) { race_access(data, N, Kind::atomic_write, PC); }
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)
void __tsan_read_range(const void* data, unsigned long bytes) { race_access(data, bytes, Kind::read, PC); }
void __tsan_write_range(const void* data, unsigned long bytes) { race_access(data, bytes, Kind::write, PC); }

// The linker gives calls of memcpy, memmove and memset in instrumented modules to these.
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  race_access(from, bytes, Kind::read, PC);
  race_access(to, bytes, Kind::write, PC);
  return std::memmove(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  race_access(from, bytes, Kind::read, PC);
  race_access(to, bytes, Kind::write, PC);
  return std::memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  race_access(to, bytes, Kind::write, PC);
  return std::memset(to, value, bytes);
}

void __tsan_atomic_thread_fence(int order) {
  cuda_on_cpu::race_fence(order == __ATOMIC_ACQ_REL, true, true);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

#define FETCH(BITS, T, NAME)                                                                     \
  T __tsan_atomic##BITS##_fetch_##NAME(volatile T* data, T value, int order) {                   \
    on_atomic(data, sizeof(T), Kind::update, order, {true, false, value == 0}, PC);              \
    return __atomic_fetch_##NAME(data, value, __ATOMIC_SEQ_CST);                                 \
  }
#define IDEMPOTENT_FETCH(BITS, T, NAME)                                                          \
  T __tsan_atomic##BITS##_fetch_##NAME(volatile T* data, T value, int order) {                   \
    on_atomic(data, sizeof(T), Kind::update, order, {}, PC);                                     \
    return __atomic_fetch_##NAME(data, value, __ATOMIC_SEQ_CST);                                 \
  }
#define COMPARE_EXCHANGE(BITS, T, STRENGTH)                                                                       \
  bool __tsan_atomic##BITS##_compare_exchange_##STRENGTH(volatile T* data, T* old, T value, int order, int failed) { \
    on_atomic(data, sizeof(T), Kind::update, order, {failed == __ATOMIC_RELAXED, false, *old == value}, PC);       \
    return __atomic_compare_exchange_n(data, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }
#define ATOMICS(BITS, T)                                                                         \
  T __tsan_atomic##BITS##_load(const volatile T* data, int order) {                              \
    cuda_on_cpu::runtime_access = PC;                                                            \
    if (order != __ATOMIC_ACQUIRE) on_atomic(data, sizeof(T), Kind::atomic_read, order, {}, PC); \
    return __atomic_load_n(data, __ATOMIC_SEQ_CST);                                              \
  }                                                                                              \
  void __tsan_atomic##BITS##_store(volatile T* data, T value, int order) {                       \
    on_atomic(data, sizeof(T), Kind::atomic_write, order, {false, true, false}, PC);             \
    __atomic_store_n(data, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                              \
  T __tsan_atomic##BITS##_exchange(volatile T* data, T value, int order) {                       \
    on_atomic(data, sizeof(T), Kind::update, order, {true, true, false}, PC);                    \
    return __atomic_exchange_n(data, value, __ATOMIC_SEQ_CST);                                   \
  }                                                                                              \
  FETCH(BITS, T, add)                                                                            \
  FETCH(BITS, T, sub)                                                                            \
  FETCH(BITS, T, xor)                                                                            \
  IDEMPOTENT_FETCH(BITS, T, and)                                                                 \
  IDEMPOTENT_FETCH(BITS, T, or)                                                                  \
  COMPARE_EXCHANGE(BITS, T, strong)                                                              \
  COMPARE_EXCHANGE(BITS, T, weak)
ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)

}  // extern "C"
