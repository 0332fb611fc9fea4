// Scopes and orders of libcu++'s atomics.
#include <cuda/atomic>

#include "case.h"

// The last block's counter releases nothing.
KERNEL(relaxed_count) {
  cuda::atomic_ref<int, cuda::thread_scope_device> count(*scratch);
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @relaxed_count
  int before = count.fetch_add(1, fixed ? cuda::std::memory_order_acq_rel : cuda::std::memory_order_relaxed);
  if (before == gridDim.x - 1)
    for (int i = 0; i < gridDim.x; ++i) out[64 + i] = out[i];  // @relaxed_count
}
PLANT(relaxed_count)

// Atomics of a block, between blocks.
KERNEL(scope_of_a_block) {
  if (fixed)
    cuda::atomic_ref<int, cuda::thread_scope_device>(*scratch).fetch_add(1, cuda::memory_order_relaxed);
  else
    cuda::atomic_ref<int, cuda::thread_scope_block>(*scratch).fetch_add(1, cuda::memory_order_relaxed);  // @scope_of_a_block
}
PLANT(scope_of_a_block)

// A flag in shared memory, from one warp to the other.
KERNEL(relaxed_flag) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> ready;
  __shared__ float value;
  int t = threadIdx.x;
  if (t == 0) ready.store(0, cuda::memory_order_relaxed);
  __syncthreads();
  if (t == 0) {
    value = x[0];  // @relaxed_flag
    ready.store(1, fixed ? cuda::memory_order_release : cuda::memory_order_relaxed);
  } else if (t >= 32 && ready.load(cuda::memory_order_acquire)) {
    out[blockIdx.x * 64 + t] = value;  // @relaxed_flag
  }
}
PLANT(relaxed_flag)

KERNEL(fence_of_libcuxx) {
  cuda::atomic_ref<int, cuda::thread_scope_device> count(*scratch);
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @fence_of_libcuxx
  cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel,
                            fixed ? cuda::thread_scope_device : cuda::thread_scope_block);
  bool last = count.fetch_add(1, cuda::std::memory_order_relaxed) == gridDim.x - 1;
  cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel);
  if (last)
    for (int i = 0; i < gridDim.x; ++i) out[64 + i] = out[i];  // @fence_of_libcuxx
}
PLANT(fence_of_libcuxx)
