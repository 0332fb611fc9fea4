// A writer that waits for some of its readers: the detector has to remember all of them.
#include "case.h"

__device__ unsigned at_barrier(const void* barrier) { return static_cast<unsigned>(__cvta_generic_to_shared(barrier)); }

__device__ void wait_for(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

__device__ void arrive(unsigned barrier) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(barrier) : "memory");
}

// Five warps read a stage, and the barrier for "empty" expects four of them.
KERNEL(early_release) {
  __shared__ float stage;
  __shared__ unsigned long long barriers[2];
  int t = threadIdx.x, warp = t / 32;
  unsigned full = at_barrier(&barriers[0]), empty = at_barrier(&barriers[1]);
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(full), "r"(1) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(empty), "r"(fixed ? 5 : 4) : "memory");
  }
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    if (warp == 0) {
      if (t == 0) {
        if (round > 0) wait_for(empty, round - 1 & 1);
        stage = x[round];  // @early_release
        arrive(full);
      }
    } else {
      wait_for(full, round & 1);
      if (t % 32 == 0) {
        out[blockIdx.x * 256 + warp * 32 + round] = stage;  // @early_release
        if (fixed || warp != 5) arrive(empty);
      }
    }
    __syncwarp();
  }
}
PLANT_ON(early_release, 4, 192, 0)

// The last of four blocks clears what all have read, but one of them counted itself before it read.
KERNEL(early_count) {
  if (threadIdx.x != 0) return;
  bool early = !fixed && blockIdx.x == 2;
  int last = 0;
  if (early) {
    __threadfence();
    last = atomicAdd(&scratch[1], 1) == 3;
  }
  out[blockIdx.x] = scratch[0];  // @early_count
  if (!early) {
    __threadfence();
    last = atomicAdd(&scratch[1], 1) == 3;
  }
  __threadfence();
  if (last) scratch[0] = 7;  // @early_count
}
PLANT_ON(early_count, 4, 32, 0)
