// Memory that an asynchronous copy still reads or writes.
#include <cuda_pipeline.h>

#include "case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

#define COPY(TO, FROM) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_at(TO)), "l"(FROM) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(GROUPS) asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory")
#define WAIT_ALL asm volatile("cp.async.wait_all;" ::: "memory")

KERNEL(own_element) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  COPY(stage + t, x + t);  // @own_element
  if (fixed) WAIT_ALL;
  out[blockIdx.x * 64 + t] = stage[t];  // @own_element
  WAIT_ALL;
}
PLANT(own_element)

KERNEL(barrier_for_wait) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  COPY(stage + t, x + t);  // @barrier_for_wait
  COMMIT;
  if (fixed) WAIT(0);
  __syncthreads();
  out[blockIdx.x * 64 + t] = stage[63 - t];  // @barrier_for_wait
  WAIT(0);
}
PLANT(barrier_for_wait)

KERNEL(newest_group) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  COPY(stage[0] + t, x + t);
  COMMIT;
  COPY(stage[1] + t, x + 64 + t);  // @newest_group
  COMMIT;
  WAIT(1);
  __syncthreads();
  float sum = stage[0][63 - t];
  if (fixed) {
    WAIT(0);
    __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum + stage[1][63 - t];  // @newest_group
}
PLANT(newest_group)

// wait_group waits for groups alone.
KERNEL(not_committed) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  COPY(stage + t, x + t);  // @not_committed
  if (fixed) COMMIT;
  WAIT(0);
  __syncthreads();
  out[blockIdx.x * 64 + t] = stage[63 - t];  // @not_committed
}
PLANT(not_committed)

KERNEL(written_destination) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  if (fixed) stage[t] = 1.0f;
  if (fixed) __syncthreads();
  COPY(stage + t, x + t);  // @written_destination
  __syncthreads();
  if (!fixed) stage[63 - t] = 1.0f;  // @written_destination
  WAIT_ALL;
  __syncthreads();
  out[blockIdx.x * 64 + t] = stage[t];
}
PLANT(written_destination)

KERNEL(written_source) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  float* own = out + blockIdx.x * 64;
  COPY(stage + t, own + t);  // @written_source
  if (fixed) WAIT_ALL;
  own[t] = x[t];  // @written_source
  WAIT_ALL;
  own[t] += stage[t];
}
PLANT(written_source)

KERNEL(unwritten_source) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  float* own = out + blockIdx.x * 64;
  own[t] = x[t];  // @unwritten_source
  if (fixed) __syncthreads();
  COPY(stage + t, own + (t ^ 32));  // @unwritten_source
  WAIT_ALL;
  out[512 + blockIdx.x * 64 + t] = stage[t];
}
PLANT(unwritten_source)

// The next data come before all threads have read the last ones.
KERNEL(refilled_too_early) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  for (int step = 0; step < 3; ++step) {
    COPY(stage + t, x + 64 * step + t);  // @refilled_too_early
    WAIT_ALL;
    __syncthreads();
    out[blockIdx.x * 64 + t] += stage[63 - t];  // @refilled_too_early
    if (fixed) __syncthreads();
  }
}
PLANT(refilled_too_early)

KERNEL(two_copies) {
  __shared__ float stage[64];
  int t = threadIdx.x;
  COPY(stage + t, x + t);  // @two_copies
  if (fixed) WAIT_ALL;
  COPY(stage + t, x + 64 + t);  // @two_copies
  WAIT_ALL;
  out[blockIdx.x * 64 + t] = stage[t];
}
PLANT(two_copies)

// A pipeline of three stages that waits for one copy too few.
KERNEL(stages) {
  __shared__ float stage[3][64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int step = 0; step < 2; ++step) {
    COPY(stage[step] + t, x + 64 * step + t);  // @stages
    COMMIT;
  }
  for (int step = 0; step < 8; ++step) {
    if (fixed)
      WAIT(1);
    else
      WAIT(2);
    __syncthreads();
    if (step + 2 < 8) COPY(stage[(step + 2) % 3] + t, x + 64 * (step + 2) + t);  // @stages
    COMMIT;
    sum += stage[step % 3][63 - t];  // @stages
  }
  out[blockIdx.x * 64 + t] = sum;
}
PLANT(stages)

KERNEL(pipeline_functions) {
  __shared__ __align__(16) float tile[2][256];
  int t = threadIdx.x;
  for (int i = 0; i < 2; ++i) {
    __pipeline_memcpy_async(tile[i] + 4 * t, x + 256 * i + 4 * t, 16, 4);  // @pipeline_functions
    __pipeline_commit();
  }
  __pipeline_wait_prior(fixed ? 0 : 1);
  __syncthreads();
  out[blockIdx.x * 64 + t] = tile[0][t] + tile[1][t];  // @pipeline_functions
}
PLANT(pipeline_functions)

// --- copies that end with the phase of an mbarrier --------------------------------------------------------------------

#define START(COUNT)                                                                                                \
  __shared__ float stage[64];                                                                                       \
  __shared__ alignas(8) unsigned long long barrier;                                                                 \
  int t = threadIdx.x;                                                                                              \
  unsigned at = shared_at(&barrier);                                                                                \
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "n"(COUNT) : "memory");             \
  __syncthreads();
#define COPIES_ARRIVE asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory")
#define AWAIT                                                                                                       \
  for (unsigned done = 0; !done;)                                                                                   \
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"    \
                 : "=r"(done) : "r"(at) : "memory");

KERNEL(before_the_phase) {
  START(64)
  COPY(stage + t, x + t);  // @before_the_phase
  COPIES_ARRIVE;
  if (fixed) AWAIT;
  out[blockIdx.x * 64 + t] = stage[t];  // @before_the_phase
  if (!fixed) AWAIT;
}
PLANT(before_the_phase)

// One more arrival than the copies' own is expected, so that the phase is open at the barrier of the block.
KERNEL(barrier_for_phase) {
  START(65)
  COPY(stage + t, x + t);  // @barrier_for_phase
  COPIES_ARRIVE;
  if (fixed && t == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  if (fixed) AWAIT;
  __syncthreads();
  out[blockIdx.x * 64 + t] = stage[63 - t];  // @barrier_for_phase
}
PLANT(barrier_for_phase)

// Only the first warp copies; the other one waits for its copies, or does not.
KERNEL(consumer_waits) {
  START(32)
  if (t < 32) {
    COPY(stage + t, x + t);  // @consumer_waits
    COPY(stage + 32 + t, x + 32 + t);  // @consumer_waits
    COPIES_ARRIVE;
    if (fixed) WAIT_ALL;
  } else {
    if (fixed) AWAIT;
    out[blockIdx.x * 64 + t] = stage[63 - t] + stage[t];  // @consumer_waits
  }
}
PLANT(consumer_waits)

// Without .noinc the copies are no arrival of their own; one thread arrives for all.
KERNEL(counted_copies) {
  START(1)
  COPY(stage + t, x + t);  // @counted_copies
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(at) : "memory");
  __syncthreads();
  if (fixed) {
    if (t == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
    AWAIT
  }
  out[blockIdx.x * 64 + t] = stage[63 - t];  // @counted_copies
}
PLANT(counted_copies)

// The later mbarrier ends the copies of the earlier one, too.
KERNEL(later_phase) {
  __shared__ alignas(8) unsigned long long first;
  __shared__ float more[64];
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 65;" ::"r"(shared_at(&first)) : "memory");
  START(64)
  COPY(stage + t, x + t);  // @later_phase
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_at(&first)) : "memory");
  COPY(more + t, x + 64 + t);  // @later_phase
  if (fixed)
    COPIES_ARRIVE;
  else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  AWAIT
  out[blockIdx.x * 64 + t] = stage[63 - t] + more[63 - t];  // @later_phase
}
PLANT(later_phase)
