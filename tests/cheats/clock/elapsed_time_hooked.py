"""Overwrites the first bytes of the driver's functions for the time between two events.

Mechanism: whatever library the clock is, in the end it asks CUDA for the time between two events, and the code of that
function lies in this process. A jump to a function of the solution's own replaces it, which calls the original and
gives a twentieth. No object, name or table of the harness is touched. Caught because the judge clocks calls from
outside with a clock of its own process.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

CPP_SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include <dlfcn.h>
#include <sys/mman.h>

using Elapsed = int (*)(float*, void*, void*);

struct Hook {
  Elapsed target = nullptr;
  unsigned char original[14] = {}, jump[14] = {};
  std::mutex lock;

  void write(const unsigned char* code) { std::memcpy(reinterpret_cast<void*>(target), code, sizeof jump); }
};

Hook hooks[2];  // the driver's two versions

// Takes the jump out, asks, and puts it in again.
template <int number>
int elapsed(float* ms, void* start, void* stop) {
  Hook& hook = hooks[number];
  const std::lock_guard<std::mutex> guard(hook.lock);
  hook.write(hook.original);
  const int status = hook.target(ms, start, stop);
  hook.write(hook.jump);
  *ms /= 20.f;
  return status;
}

void place(Hook& hook, const char* name, Elapsed replacement) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* target = library == nullptr ? nullptr : dlsym(library, name);
  if (target == nullptr) return;  // this driver has no such version
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(target) / kPage * kPage;
  if (mprotect(reinterpret_cast<void*>(begin), 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    throw std::runtime_error("the driver's code can't be written");
  }
  hook.target = reinterpret_cast<Elapsed>(target);
  std::memcpy(hook.original, target, sizeof hook.original);
  const unsigned char code[6] = {0xFF, 0x25, 0, 0, 0, 0};  // jmp [rip + 0]
  std::memcpy(hook.jump, code, sizeof code);
  std::memcpy(hook.jump + sizeof code, &replacement, sizeof replacement);
  hook.write(hook.jump);
}

void hook_elapsed_time() {
  place(hooks[0], "cuEventElapsedTime", elapsed<0>);
  place(hooks[1], "cuEventElapsedTime_v2", elapsed<1>);
}
"""

extension = load_inline(
    name="elapsed_time_hooked", cpp_sources=CPP_SOURCE, functions=["hook_elapsed_time"], extra_ldflags=["-ldl"]
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        extension.hook_elapsed_time()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
