// Threads of a block that share data without a barrier of the whole block, or with few of them.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

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

// One warp fills a ring of stages, and three warps use them.
KERNEL(producer_and_consumers) {
  constexpr int stages = 2, rounds = 6;
  __shared__ float ring[stages][32];
  __shared__ unsigned long long full[stages], empty[stages];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t < stages) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at_barrier(&full[t])), "r"(32) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at_barrier(&empty[t])), "r"(3) : "memory");
  }
  __syncthreads();
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    int stage = round % stages, turn = round / stages;
    if (warp == 0) {
      if (turn > 0) wait_for(at_barrier(&empty[stage]), (turn - 1) & 1);
      ring[stage][lane] = x[round * 32 + lane];
      arrive(at_barrier(&full[stage]));
    } else {
      wait_for(at_barrier(&full[stage]), turn & 1);
      sum += ring[stage][31 - lane];
      __syncwarp();
      if (lane == 0) arrive(at_barrier(&empty[stage]));
    }
  }
  if (warp > 0) out[blockIdx.x * 128 + t] = sum;
}
HONEST(producer_and_consumers, 4, 128)

// Two groups of warps take turns with named barriers.
KERNEL(turns) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  bool first = t < 64;
  for (int round = 0; round < 3; ++round) {
    if (first) {
      if (round > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
      tile[t] = x[round * 64 + t];
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[blockIdx.x * 192 + round * 64 + t - 64] = tile[127 - t];
      if (round < 2) asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  }
}
HONEST(turns, 4, 128)

// Tiles arrive by asynchronous copies, one in advance.
KERNEL(copies_in_advance) {
  __shared__ alignas(16) float tiles[2][256];
  int t = threadIdx.x;
  float sum = 0.0f;
  __pipeline_memcpy_async(&tiles[0][t * 4], &x[t * 4], 16);
  __pipeline_commit();
  for (int step = 0; step < 4; ++step) {
    if (step < 3) __pipeline_memcpy_async(&tiles[(step + 1) % 2][t * 4], &x[(step + 1) * 256 + t * 4], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += tiles[step % 2][255 - t];
    __syncthreads();
  }
  out[blockIdx.x * 64 + t] = sum;
}
HONEST(copies_in_advance, 4, 64)

// One barrier a step, because the buffers take turns.
KERNEL(two_buffers) {
  __shared__ float buffers[2][64];
  int t = threadIdx.x;
  buffers[0][t] = x[blockIdx.x * 64 + t];
  for (int step = 1, now = 0; step < 64; step *= 2, now ^= 1) {
    __syncthreads();
    buffers[now ^ 1][t] = buffers[now][t] + (t >= step ? buffers[now][t - step] : 0.0f);
  }
  out[blockIdx.x * 64 + t] = buffers[0][t];
}
HONEST(two_buffers, 4, 64)

// The lanes that are there together make one atomic of theirs.
KERNEL(aggregated) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  if (x[i] > 1.2f) {
    unsigned mask = __activemask();
    int leader = __ffs(mask) - 1, start = 0;
    if (lane == leader) start = atomicAdd(scratch, __popc(mask));
    start = __shfl_sync(mask, start, leader);
    out[start + __popc(mask & ((1u << lane) - 1))] = x[i];
  }
}
HONEST(aggregated, 4, 64)

// Lanes of one bin find each other, and their leader counts them.
KERNEL(matched) {
  __shared__ int bins[16];
  int t = threadIdx.x, bin = t * 5 % 16;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  unsigned same = __match_any_sync(0xffffffffu, bin);
  if (t % 32 == __ffs(same) - 1) atomicAdd(&bins[bin], __popc(same));
  __syncthreads();
  if (t < 16) atomicAdd(&scratch[t], bins[t]);
}
HONEST(matched, 4, 64)

// A warp's own part of shared memory needs only __syncwarp.
KERNEL(parts_of_warps) {
  __shared__ float parts[2][33];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float value = x[blockIdx.x * 64 + threadIdx.x];
  for (int step = 0; step < 3; ++step) {
    parts[warp][lane] = value;
    __syncwarp();
    value += parts[warp][31 - lane];
    __syncwarp();
  }
  out[blockIdx.x * 64 + threadIdx.x] = value;
}
HONEST(parts_of_warps, 4, 64)

// Steps until no thread changes anything.
KERNEL(until_nothing_changes) {
  __shared__ int values[64];
  int t = threadIdx.x, largest = t * 29 % 64;
  do {
    values[t] = largest;
    __syncthreads();
    largest = t > 0 ? max(values[t], values[t - 1]) : values[0];
  } while (__syncthreads_or(largest != values[t]));
  out[blockIdx.x * 64 + t] = values[t];
}
HONEST(until_nothing_changes, 4, 64)

// A sum by tiles of cooperative groups, with one element of shared memory a tile.
KERNEL(tiles_of_groups) {
  namespace cg = cooperative_groups;
  __shared__ float sums[4];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float value = x[blockIdx.x * 64 + block.thread_rank()];
  for (int step = 8; step > 0; step /= 2) value += tile.shfl_down(value, step);
  if (tile.thread_rank() == 0) sums[block.thread_rank() / 16] = value;
  block.sync();
  if (block.thread_rank() == 0) out[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}
HONEST(tiles_of_groups, 4, 64)
