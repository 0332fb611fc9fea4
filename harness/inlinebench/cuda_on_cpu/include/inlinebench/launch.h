// The translation of `kernel<<<grid, block, shared, stream>>>(arguments)`.
#pragma once

#include <utility>

#include "inlinebench/runtime.h"
#include "inlinebench/stream.h"

namespace inlinebench {

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  // A braced list in the chevrons initialises these parameters as it does CUDA's.
  Configuration(dim3 grid, dim3 block = 1, std::size_t shared_bytes = 0, cudaStream_t = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes) {}
};

template <class Thread>
void run_threads(const void* closure) {
  const Thread& thread = *static_cast<const Thread*>(closure);
  do {
    thread();
  } while (next_thread());
}

template <class Kernel>
class Launcher {
 public:
  Launcher(const char* name, int line, Kernel kernel, Configuration configuration)
      : info_{name, line, configuration.grid, configuration.block, configuration.shared_bytes}, kernel_(kernel) {}

  // The arguments are evaluated once, here; each CUDA thread gets its own copy, as by-value parameters.
  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    auto thread = [&] { kernel_(arguments...); };
    launch(info_, &run_threads<decltype(thread)>, &thread);
  }

 private:
  LaunchInfo info_;
  Kernel kernel_;
};

}  // namespace inlinebench
