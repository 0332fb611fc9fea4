// Buffers that some warps fill and others empty, with named barriers and mbarriers that are used again and again.
#include "case.h"

#define SYNC(NUMBER) asm volatile("bar.sync %0, 64;" ::"n"(NUMBER) : "memory")
#define ARRIVE(NUMBER) asm volatile("bar.arrive %0, 64;" ::"n"(NUMBER) : "memory")

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ void start(unsigned long long* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(barrier)) : "memory");
}
__device__ __forceinline__ void await(unsigned long long* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred P1;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra WAIT;\nDONE:\n}"
      ::"r"(shared_at(barrier)), "r"(parity) : "memory");
}

KERNEL(one_barrier_a_step) {
  __shared__ float stage[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int step = 0; step < 4; ++step) {
    if (warp == 0) stage[lane] = x[step * 32 + lane];  // @one_barrier_a_step
    SYNC(1);
    if (warp == 1) out[step * 32 + lane] = stage[31 - lane];  // @one_barrier_a_step
    if (fixed) SYNC(2);
  }
}
PLANT_ON(one_barrier_a_step, 1, 64, 0)

// The consumer says that the buffer is empty before it reads.
KERNEL(arrives_before_reading) {
  __shared__ float stage[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int step = 0; step < 4; ++step)
    if (warp == 0) {
      if (step > 0) SYNC(2);
      stage[lane] = x[step * 32 + lane];  // @arrives_before_reading
      ARRIVE(1);
    } else {
      SYNC(1);
      if (!fixed && step < 3) ARRIVE(2);
      out[step * 32 + lane] = stage[31 - lane];  // @arrives_before_reading
      if (fixed && step < 3) ARRIVE(2);
    }
}
PLANT_ON(arrives_before_reading, 1, 64, 0)

// The same the other way around: the producer says that the buffer is full before it writes.
KERNEL(arrives_before_writing) {
  __shared__ float stage[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int step = 0; step < 4; ++step)
    if (warp == 1) {
      if (step > 0) SYNC(2);
      if (!fixed) ARRIVE(1);
      stage[lane] = x[step * 32 + lane];  // @arrives_before_writing
      if (fixed) ARRIVE(1);
    } else {
      SYNC(1);
      out[step * 32 + lane] = stage[31 - lane];  // @arrives_before_writing
      if (step < 3) ARRIVE(2);
    }
}
PLANT_ON(arrives_before_writing, 1, 64, 0)

// Both warps write after one use of the barrier and read after the next one, but one of them reads too early.
KERNEL(reads_before_next_use) {
  __shared__ float held[64];
  int t = threadIdx.x;
  SYNC(1);
  held[t] = x[t];  // @reads_before_next_use
  if (fixed) SYNC(1);
  float value = held[t ^ 32];  // @reads_before_next_use
  if (!fixed) SYNC(1);
  out[t] = value;
}
PLANT_ON(reads_before_next_use, 1, 64, 0)

KERNEL(mbarrier_before_reading) {
  __shared__ float stage[2][32];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 2) {
    start(full + threadIdx.x, 32);
    start(empty + threadIdx.x, 32);
  }
  __syncthreads();
  for (int step = 0; step < 8; ++step) {
    int which = step % 2, round = step / 2;
    if (warp == 0) {
      await(empty + which, (round & 1) ^ 1);
      stage[which][lane] = x[step * 32 + lane];  // @mbarrier_before_reading
      arrive(full + which);
    } else {
      await(full + which, round & 1);
      if (!fixed) arrive(empty + which);
      out[step * 32 + lane] = stage[which][31 - lane];  // @mbarrier_before_reading
      if (fixed) arrive(empty + which);
    }
  }
}
PLANT_ON(mbarrier_before_reading, 1, 64, 0)

KERNEL(one_mbarrier_a_step) {
  __shared__ float stage[32];
  __shared__ alignas(8) unsigned long long full, empty;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    start(&full, 64);
    start(&empty, 64);
  }
  __syncthreads();
  for (int step = 0; step < 4; ++step) {
    if (warp == 0) stage[lane] = x[step * 32 + lane];  // @one_mbarrier_a_step
    arrive(&full);
    await(&full, step & 1);
    if (warp == 1) out[step * 32 + lane] = stage[31 - lane];  // @one_mbarrier_a_step
    if (fixed) {
      arrive(&empty);
      await(&empty, step & 1);
    }
  }
}
PLANT_ON(one_mbarrier_a_step, 1, 64, 0)

// One lane arrives for its warp, but the others may still be reading.
KERNEL(lane_arrives_alone) {
  __shared__ float stage[32];
  __shared__ alignas(8) unsigned long long full, empty;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    start(&full, 32);
    start(&empty, 1);
  }
  __syncthreads();
  for (int step = 0; step < 4; ++step)
    if (warp == 0) {
      await(&empty, (step & 1) ^ 1);
      stage[lane] = x[step * 32 + lane];  // @lane_arrives_alone
      arrive(&full);
    } else {
      await(&full, step & 1);
      out[step * 32 + lane] = stage[31 - lane];  // @lane_arrives_alone
      if (fixed) __syncwarp();
      if (lane == 0) arrive(&empty);
    }
}
PLANT_ON(lane_arrives_alone, 1, 64, 0)

// All threads fence before they arrive at the mbarrier, and the one that waited makes the atomic.
KERNEL(mbarrier_passes_fences) {
  __shared__ alignas(8) unsigned long long barrier;
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) start(&barrier, 64);
  __syncthreads();
  out[blockIdx.x * 64 + t] = x[t];  // @mbarrier_passes_fences
  if (fixed) __threadfence();
  arrive(&barrier);
  if (t == 0) {
    await(&barrier, 0);
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[512 + t] = out[(blockIdx.x + 1) % 4 * 64 + t];  // @mbarrier_passes_fences
}
PLANT(mbarrier_passes_fences)
