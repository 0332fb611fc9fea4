// Asynchronous copies to shared memory.
#pragma once

#include <cstddef>

#include "inlinebench/async_copies.h"
#include "inlinebench/qualifiers.h"

INLINEBENCH_INLINE void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t zero_fill = 0) {
  inlinebench::copy_async(to, from, bytes, bytes - zero_fill);
}
inline void __pipeline_commit() { inlinebench::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t newest) { inlinebench::wait_for_copies(static_cast<unsigned>(newest)); }
