// Barriers of cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include "case.h"

namespace cg = cooperative_groups;

KERNEL(block_group) {
  __shared__ float held[64];
  auto block = cg::this_thread_block();
  int t = block.thread_rank();
  held[t] = x[t];  // @block_group
  if (fixed) block.sync();
  out[blockIdx.x * 64 + t] = held[63 - t];  // @block_group
}
PLANT(block_group)

// Tiles of 16 do not order the warp.
KERNEL(small_tile) {
  __shared__ float held[64];
  auto tile = cg::tiled_partition<fixed ? 32 : 16>(cg::this_thread_block());
  int t = threadIdx.x;
  held[t] = x[t];  // @small_tile
  tile.sync();
  out[blockIdx.x * 64 + t] = held[t ^ 16];  // @small_tile
}
PLANT(small_tile)

KERNEL(copy_not_awaited) {
  __shared__ float held[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, held, x, sizeof held);  // @copy_not_awaited
  if (fixed) cg::wait(block);
  out[blockIdx.x * 64 + threadIdx.x] = held[threadIdx.x];  // @copy_not_awaited
}
PLANT(copy_not_awaited)

KERNEL(grid_step) {
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  out[i] = x[i];  // @grid_step
  if (fixed)
    cg::this_grid().sync();
  else
    __syncthreads();
  out[512 + i] = out[255 - i];  // @grid_step
}
PLANT_COOPERATIVE(grid_step)

// One of two grid barriers is missing: a block overwrites what another one still reads.
KERNEL(grid_reuse) {
  auto grid = cg::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int step = 0; step < 3; ++step) {
    scratch[i] = i + step;  // @grid_reuse
    grid.sync();
    out[i] += scratch[(i + 64) % 256] * (step == 0 ? 0.0f : x[i]);  // @grid_reuse
    if (fixed) grid.sync();
  }
}
PLANT_COOPERATIVE(grid_reuse)

KERNEL(block_leaves) {
  if (!fixed && blockIdx.x == 3) return;
  cg::this_grid().sync();  // @block_leaves
  out[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
}
PLANT_COOPERATIVE(block_leaves)
