// Blocks that give each other data within a launch.
#include <cooperative_groups.h>

#include "case.h"

__device__ float block_sum(float value) {
  __shared__ float warps[2];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  return warps[0] + warps[1];
}

// The block that comes last adds the sums of all, and leaves the counter as it was.
KERNEL(last_block_sum) {
  __shared__ bool last;
  float sum = block_sum(x[blockIdx.x * 64 + threadIdx.x]);
  if (threadIdx.x == 0) {
    out[1 + blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(reinterpret_cast<unsigned*>(scratch), gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = block_sum(threadIdx.x < gridDim.x ? out[1 + threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) out[0] = sum;
}
HONEST(last_block_sum, 8, 64)

// A scan in one pass with decoupled look-back: a tile publishes its sum, then its prefix, as a value with a state.
KERNEL(look_back) {
  __shared__ int ticket;
  __shared__ float before;
  auto* tiles = reinterpret_cast<volatile unsigned long long*>(scratch + 2);
  if (threadIdx.x == 0) ticket = atomicAdd(scratch, 1);
  __syncthreads();
  int tile = ticket;
  float sum = block_sum(x[tile * 64 + threadIdx.x]);
  auto describe = [](unsigned state, float value) {
    return static_cast<unsigned long long>(__float_as_uint(value)) << 32 | state;
  };
  if (threadIdx.x == 0) {
    tiles[tile] = describe(tile == 0 ? 2 : 1, sum);
    float prefix = 0.0f;
    for (int other = tile - 1; other >= 0;) {
      unsigned long long word = tiles[other];
      prefix += __uint_as_float(static_cast<unsigned>(word >> 32));
      if ((word & 3) == 2) break;
      other -= (word & 3) == 1;
    }
    if (tile > 0) tiles[tile] = describe(2, prefix + sum);
    before = prefix;
  }
  __syncthreads();
  out[tile * 64 + threadIdx.x] = before + x[tile * 64 + threadIdx.x];
}
HONEST(look_back, 8, 64)

// Slices of a sum over K: the last slice of a tile adds up the partial tiles.
KERNEL(split_k) {
  __shared__ int arrived;
  int tile = blockIdx.x / 4, slice = blockIdx.x % 4, t = threadIdx.x;
  out[128 + blockIdx.x * 64 + t] = x[slice * 64 + t] * (tile + 1);
  __threadfence();
  __syncthreads();
  if (t == 0) arrived = atomicAdd(&scratch[tile], 1);
  __syncthreads();
  if (arrived < 3) return;
  __threadfence();
  float sum = 0.0f;
  for (int other = 0; other < 4; ++other) sum += out[128 + (tile * 4 + other) * 64 + t];
  out[tile * 64 + t] = sum;
  if (t == 0) scratch[tile] = 0;
}
HONEST(split_k, 8, 64)

// Blocks take work in turn; the one that ends a tile waits for the flags of those that began it, and adds their parts.
KERNEL(stream_k) {
  __shared__ int ticket;
  int t = threadIdx.x;
  if (t == 0) ticket = atomicAdd(scratch, 1);
  __syncthreads();
  int tile = ticket / 3, part = ticket % 3;
  float value = x[ticket * 64 + t];
  if (part < 2) {
    out[256 + ticket * 64 + t] = value;
    __threadfence();
    __syncthreads();
    if (t == 0) atomicExch(&scratch[1 + ticket], 1);
    return;
  }
  if (t == 0)
    for (int other = ticket - 2; other < ticket;) other += atomicCAS(&scratch[1 + other], 1, 1) == 1;
  __threadfence();
  __syncthreads();
  for (int other = ticket - 2; other < ticket; ++other) value += out[256 + other * 64 + t];
  out[tile * 64 + t] = value;
}
HONEST(stream_k, 9, 64)

// A release and an acquire in PTX, by one thread for its block.
KERNEL(release_acquire) {
  __shared__ int order;
  int t = threadIdx.x;
  out[64 + blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t == 0)
    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(order) : "l"(scratch) : "memory");
  __syncthreads();
  if (order == gridDim.x - 1) {
    float sum = 0.0f;
    for (int block = 0; block < gridDim.x; ++block) sum += out[64 + block * 64 + t];
    out[t] = sum;
  }
}
HONEST(release_acquire, 8, 64)

// Red-black smoothing: grid barriers between the half steps.
KERNEL(grid_steps) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x, count = gridDim.x * 64;
  out[i] = x[i];
  for (int step = 0; step < 4; ++step) {
    grid.sync();
    if (i % 2 == step % 2 && i > 0 && i < count - 1) out[i] = (out[i - 1] + out[i + 1]) * 0.5f;
  }
}
HONEST_COOPERATIVE(grid_steps, 4, 64)

// Threads insert keys into an open hash table, and count how often each comes.
KERNEL(hash_table) {
  int key = (blockIdx.x * 64 + threadIdx.x) % 37 + 1;
  for (int slot = key * 7 % 128;; slot = (slot + 1) % 128) {
    int found = atomicCAS(&scratch[slot], 0, key);
    if (found != 0 && found != key) continue;
    atomicAdd(&scratch[128 + slot], 1);
    break;
  }
}
HONEST(hash_table, 4, 64)

// A lock around a plain value.
KERNEL(lock) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS(scratch, 0, 1) != 0) __nanosleep(100);
  __threadfence();
  scratch[1] = scratch[1] * 3 + threadIdx.x;
  __threadfence();
  atomicExch(scratch, 0);
}
HONEST(lock, 4, 64)

// An in-place kernel reads by __ldg what the same thread overwrites.
KERNEL(in_place) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float value = __ldg(&out[i]);
  out[i] = value * 2.0f + __ldg(&x[i]);
}
HONEST(in_place, 4, 64)
