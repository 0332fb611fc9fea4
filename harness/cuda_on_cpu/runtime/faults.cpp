#include "faults.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

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

void say(const char* what, const char* kernel, const char* detail) {
  char message[1024];
  int length = std::snprintf(message, sizeof message,
                             "\ninlinebench: %s in kernel %s, block (%u, %u, %u), thread (%u, %u, %u)%s%s\n", what, kernel,
                             blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, detail ? ": " : "",
                             detail ? detail : "");
  if (length > 0) {
    ssize_t ignored = write(2, message, static_cast<std::size_t>(length));
    (void)ignored;
  }
}

// What was found before the fault. It allocates memory, which is safe enough where the fault is in a kernel's own code.
void say_races() {
  race_thread = nullptr;
  std::string found = RaceDetector::instance().findings_so_far();
  if (!found.empty()) found = "inlinebench: " + found + "\n";
  found += RaceDetector::instance().take_notes();
  ssize_t ignored = write(2, found.data(), found.size());
  (void)ignored;
}

// Says what is known, then lets the earlier handler (Python's faulthandler, or death by the signal) have it.
void on_fault(int signal, siginfo_t* info, void*) {
  Worker* worker = Worker::existing();
  if (worker && worker->job()) {
    char text[256];
    const char* detail = nullptr;
    if (signal == SIGSEGV || signal == SIGBUS) {
      detail = worker->describe_fault(info->si_addr, text, sizeof text);
      if (!detail && !info->si_addr) detail = "null or misaligned address";
      if (!detail) {
        std::snprintf(text, sizeof text, "address %p is in no tensor or allocation", info->si_addr);
        detail = text;
      }
    }
    say(title(signal), worker->job()->info->kernel, detail);
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
  });
}

void trap(const char* what) {
  Worker* worker = Worker::existing();
  say(what, worker && worker->job() ? worker->job()->info->kernel : "(none)", nullptr);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGABRT, &action, nullptr);
  std::abort();
}

}  // namespace cuda_on_cpu
