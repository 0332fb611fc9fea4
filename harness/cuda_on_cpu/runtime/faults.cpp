#include "faults.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <mutex>
#include <sstream>

#include "cuda_on_cpu/runtime.h"
#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

namespace {

constexpr int handled[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction previous[sizeof(handled) / sizeof(handled[0])];

const char* title(int signal) {
  switch (signal) {
    case SIGFPE: return "integer division by zero";
    case SIGILL: return "misaligned address";  // the check that -fsanitize=alignment puts before an access
    case SIGABRT: return "failed assertion or abort";
    default: return "out of bounds access";
  }
}

void write_error(const std::string& text) {
  ssize_t ignored = write(2, text.data(), text.size());
  (void)ignored;
}

// `pc` is the address after the instruction. All of this allocates memory, which is safe enough where the fault is in a
// kernel's own code.
void say(const std::string& what, const char* kernel, std::uint64_t pc, const std::string& detail) {
  std::string line = source_lines({pc})[0];
  if (line == unknown_line) line = source_lines({reinterpret_cast<std::uint64_t>(runtime_access)})[0];
  write_error("\ninlinebench: " + what + " in kernel " + kernel + ", block " + text_of(blockIdx) + ", thread " +
              text_of(threadIdx) + (line == unknown_line ? "" : " at " + line) + (detail.empty() ? "" : ": " + detail) +
              "\n");
}

// What was found before the fault.
void say_races() {
  race_thread = nullptr;
  std::string found = RaceDetector::instance().findings_so_far();
  if (!found.empty()) found = "inlinebench: " + found + "\n";
  write_error(found + RaceDetector::instance().take_notes());
}

std::uint64_t instruction(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return registers.pc;
#else
  (void)registers;
  return 0;
#endif
}

// The address after the instruction that the solution's library is at: the innermost frame there, since a kernel that
// spins is mostly in the runtime or in libc.
std::uint64_t kernel_instruction(const Job& job, const void* context) {
  Dl_info library{}, here{};
  auto in_library = [&](std::uint64_t at) {
    return dladdr(reinterpret_cast<void*>(at), &here) && here.dli_fbase == library.dli_fbase;
  };
  dladdr(reinterpret_cast<void*>(job.body), &library);
  if (in_library(instruction(context))) return instruction(context) + 1;
  void* frames[64];
  int depth = backtrace(frames, 64);
  for (int i = 0; i < depth; ++i)
    if (in_library(reinterpret_cast<std::uint64_t>(frames[i]))) return reinterpret_cast<std::uint64_t>(frames[i]);
  return reinterpret_cast<std::uint64_t>(runtime_access);
}

// Says where this thread's kernel is. A process is asked when it has run for too long, so only the first thread answers.
void on_question(int, siginfo_t*, void* context) {
  static std::atomic_flag answered = ATOMIC_FLAG_INIT;
  Worker* worker = Worker::existing();
  if (worker && worker->job() && !answered.test_and_set())
    say("still running", worker->job()->info->kernel, kernel_instruction(*worker->job(), context), "");
}

// Says what is known, then lets the earlier handler (Python's faulthandler, or death by the signal) have it.
void on_fault(int signal, siginfo_t* info, void* context) {
  Worker* worker = Worker::existing();
  if (worker && worker->job()) {
    bool of_address = signal == SIGSEGV || signal == SIGBUS;
    say(title(signal), worker->job()->info->kernel, instruction(context) + 1,
        of_address ? worker->describe_fault(info->si_addr) : "");
    if (worker->job()->races) say_races();
  }
  for (std::size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); ++i)
    if (handled[i] == signal) sigaction(signal, &previous[i], nullptr);
  // Returning runs the faulting instruction again, under the earlier handler; an abort has to be raised anew.
  if (signal == SIGABRT) raise(signal);
}

}  // namespace

void install_fault_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); ++i) sigaction(handled[i], &action, &previous[i]);
    action.sa_sigaction = on_question;
    action.sa_flags |= SA_RESTART;
    sigaction(SIGUSR2, &action, nullptr);
  });
}

namespace {

[[noreturn]] void stop(const std::string& what, void* pc, const std::string& detail) {
  Worker* worker = Worker::existing();
  say(what, worker && worker->job() ? worker->job()->info->kernel : "(none)", reinterpret_cast<std::uint64_t>(pc), detail);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGABRT, &action, nullptr);
  std::abort();
}

}  // namespace

void trap(const char* what) { stop(what, __builtin_return_address(0), ""); }

void trap_misaligned(const void* address, std::size_t bytes) {
  std::ostringstream detail;
  detail << "an access of " << bytes << " bytes at address " << address << ", which is not a multiple of " << bytes;
  stop("misaligned address", __builtin_return_address(0), detail.str());
}

}  // namespace cuda_on_cpu
