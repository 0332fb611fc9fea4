// The translation of `kernel<<<grid, block, shared, stream>>>(arguments)`.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/stream.h"

namespace cuda_on_cpu {

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  StreamNumber stream;
  bool cooperative = false;
  // A braced list in the chevrons initialises these parameters as it does CUDA's.
  Configuration(dim3 grid, dim3 block = 1, std::size_t shared_bytes = 0, cudaStream_t stream = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes), stream(number_of(stream)) {}
};

template <class Thread>
void run_threads(const void* closure) {
  const Thread& thread = *static_cast<const Thread*>(closure);
  do {
    thread();
  } while (next_thread());
}

template <class T>
const void* pointer_of(const T& argument) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
    return const_cast<const void*>(static_cast<const volatile void*>(argument));
  else
    return nullptr;
}

template <class Kernel>
class Launcher {
 public:
  Launcher(const char* name, int line, const char* argument_names, Kernel kernel, Configuration configuration)
      : info_{name, line, configuration.grid, configuration.block, configuration.shared_bytes, argument_names},
        stream_(configuration.stream),
        cooperative_(configuration.cooperative),
        kernel_(kernel) {}

  // The arguments are evaluated once, here; each CUDA thread gets its own copy, as by-value parameters.
  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    auto thread = [&] { kernel_(arguments...); };
    const void* pointers[] = {pointer_of(arguments)..., nullptr};
    LaunchInfo info = info_;
    info.pointers = pointers;
    info.arguments = sizeof...(arguments);
    info.stream = stream_;
    info.cooperative = cooperative_;
    launch(info, &run_threads<decltype(thread)>, &thread);
  }

 private:
  LaunchInfo info_;
  StreamNumber stream_;
  bool cooperative_;
  Kernel kernel_;
};

}  // namespace cuda_on_cpu
