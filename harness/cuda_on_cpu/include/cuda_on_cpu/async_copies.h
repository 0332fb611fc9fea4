// Asynchronous copies to shared memory: cp.async and __pipeline_memcpy_async.
//
// The data arrive when the thread waits for them, so that code which reads too early finds what was there before. In the
// second order of threads they arrive at once, so that code which still reads the old data finds the new.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// Copies `copied` bytes and sets the rest of `bytes` to 0.
void copy_async(void* to, const void* from, std::size_t bytes, std::size_t copied);
// Makes a group of the thread's copies since the last group.
void commit_copies();
// Waits for all groups except the newest ones.
void wait_for_copies(unsigned newest);
// The thread's copies so far, also those of no group, end with the current phase of an mbarrier.
void attach_copies(const void* barrier);

}  // namespace cuda_on_cpu
