// Fences of other threads than the one that makes the atomic: barriers pass them on.
#include "case.h"

// Counts this block once. Each thread is told whether it was the last one.
#define COUNT_BLOCK(LAST)                                                   \
  __shared__ bool LAST;                                                     \
  if (threadIdx.x == 0) LAST = atomicAdd(scratch, 1) == gridDim.x - 1;      \
  __syncthreads();
// The last block reads what the others' threads wrote.
#define NEIGHBOUR ((blockIdx.x + 1) % 4 * 64 + t)

// PyTorch's reductions: all threads fence, meet, and one of them counts.
KERNEL(all_fence) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @all_fence
  if (fixed) __threadfence();
  __syncthreads();
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @all_fence
}
PLANT(all_fence)

KERNEL(one_fences) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @one_fences
  if (fixed || t == 0) __threadfence();
  __syncthreads();
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @one_fences
}
PLANT(one_fences)

KERNEL(written_after_fence) {
  int t = threadIdx.x;
  if (fixed) out[blockIdx.x * 64 + t] = x[t];
  __threadfence();
  if (!fixed) out[blockIdx.x * 64 + t] = x[t];  // @written_after_fence
  __syncthreads();
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @written_after_fence
}
PLANT(written_after_fence)

KERNEL(no_meeting) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @no_meeting
  __threadfence();
  if (fixed) __syncthreads();
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @no_meeting
}
PLANT(no_meeting)

KERNEL(fences_of_blocks) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @fences_of_blocks
  if (fixed)
    __threadfence();
  else
    __threadfence_block();
  __syncthreads();
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @fences_of_blocks
}
PLANT(fences_of_blocks)

// Blocks of one warp.
KERNEL(warp_fences) {
  int t = threadIdx.x;
  out[blockIdx.x * 32 + t] = x[t];  // @warp_fences
  __threadfence();
  if (fixed) __syncwarp();
  bool last = false;
  if (t == 0) last = atomicAdd(scratch, 1) == gridDim.x - 1;
  __threadfence();
  if (last)
    for (int i = 0; i < 128; ++i) out[512] += out[i];  // @warp_fences
}
PLANT_ON(warp_fences, 4, 32, 0)

KERNEL(named_barrier_fences) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @named_barrier_fences
  if (fixed) __threadfence();
  asm volatile("bar.sync 1, 64;" ::: "memory");
  COUNT_BLOCK(last)
  __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @named_barrier_fences
}
PLANT(named_barrier_fences)

// PyTorch's radix top-k: several rounds, and a block that is not the last one has nothing to do in the next.
KERNEL(rounds) {
  int t = threadIdx.x;
  for (int round = 0; round < 2; ++round) {
    if (t < 16) scratch[64 + 64 * round + 16 * blockIdx.x + t] = t + round;  // @rounds
    if (fixed) __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (t == 0) last = atomicAdd(scratch + round, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    int sum = 0;
    for (int block = 0; block < 4; ++block) sum += scratch[64 + 16 * block + t % 16];  // @rounds
    out[blockIdx.x * 64 + t] = sum;
    if (round == 0) __syncthreads();
    if (round == 0 && t == 0) scratch[1] = gridDim.x - 1;
    __syncthreads();
  }
}
PLANT(rounds)

// --- the reader's side: the thread that makes the atomic fences before the barrier, or the others fence after it ------

KERNEL(observer_fences) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @observer_fences
  __threadfence();
  __syncthreads();
  __shared__ bool last;
  if (t == 0) {
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
    if (fixed) __threadfence();
  }
  __syncthreads();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @observer_fences
}
PLANT(observer_fences)

KERNEL(readers_fence) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @readers_fence
  __threadfence();
  __syncthreads();
  COUNT_BLOCK(last)
  if (fixed || t == 0) __threadfence();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @readers_fence
}
PLANT(readers_fence)

KERNEL(observer_fences_its_block) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @observer_fences_its_block
  __threadfence();
  __syncthreads();
  __shared__ bool last;
  if (t == 0) {
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
    if (fixed)
      __threadfence();
    else
      __threadfence_block();
  }
  __syncthreads();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @observer_fences_its_block
}
PLANT(observer_fences_its_block)

KERNEL(observer_fences_too_early) {
  int t = threadIdx.x;
  out[blockIdx.x * 64 + t] = x[t];  // @observer_fences_too_early
  __threadfence();
  __syncthreads();
  __shared__ bool last;
  if (t == 0) {
    __threadfence();
    last = atomicAdd(scratch, 1) == gridDim.x - 1;
    if (fixed) __threadfence();
  }
  __syncthreads();
  if (last) out[512 + t] = out[NEIGHBOUR];  // @observer_fences_too_early
}
PLANT(observer_fences_too_early)

// One thread looks at a flag, and its block meets.
KERNEL(observer_loads) {
  __shared__ int seen;
  int t = threadIdx.x;
  volatile int* flag = scratch;
  if (blockIdx.x == 0) {
    out[t] = x[t];  // @observer_loads
    __threadfence();
    __syncthreads();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0) {
      seen = *flag;
      if (fixed) __threadfence();
    }
    __syncthreads();
    if (seen) out[512 + blockIdx.x * 64 + t] = out[t];  // @observer_loads
  }
}
PLANT(observer_loads)
