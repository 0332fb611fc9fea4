// Asynchronous copies to shared memory.
#pragma once

#include <cstddef>

#include "cuda_on_cpu/async_copies.h"
#include "cuda_on_cpu/qualifiers.h"

CUDA_ON_CPU_INLINE void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t zero_fill = 0) {
  cuda_on_cpu::copy_async(to, from, bytes, bytes - zero_fill);
}
inline void __pipeline_commit() { cuda_on_cpu::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t newest) { cuda_on_cpu::wait_for_copies(static_cast<unsigned>(newest)); }
