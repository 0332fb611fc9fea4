// Cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "case.h"

namespace cg = cooperative_groups;

__global__ void block_kernel(const int* x, int* out) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ int held[96];
  unsigned rank = block.thread_rank();
  held[rank] = x[rank];
  block.sync();
  out[rank] = held[block.size() - 1 - rank] + block.group_index().x + block.thread_index().y;
  cg::sync(block);
}
extern "C" void thread_block(const int* x, int* out) { block_kernel<<<1, dim3(16, 6)>>>(x, out); }

__global__ void tile_kernel(const float* x, float* out) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  float value = x[block.thread_rank()];
  for (int offset = warp.size() / 2; offset > 0; offset /= 2) value += warp.shfl_down(value, offset);
  if (warp.thread_rank() == 0) out[warp.meta_group_rank()] = value;
}
extern "C" void tile_sum(const float* x, float* out) { tile_kernel<<<1, 128>>>(x, out); }

__global__ void reduce_kernel(const int* x, int* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int value = x[block.thread_rank()];
  int sum = cg::reduce(tile, value, cg::plus<int>()), low = cg::reduce(tile, value, cg::less<int>());
  int high = cg::reduce(tile, value, cg::greater<int>());
  if (tile.thread_rank() == 0) {
    out[3 * tile.meta_group_rank()] = sum;
    out[3 * tile.meta_group_rank() + 1] = low;
    out[3 * tile.meta_group_rank() + 2] = high;
  }
}
extern "C" void tile_reduce(const int* x, int* out) { reduce_kernel<<<1, 64>>>(x, out); }

__global__ void small_tiles_kernel(const int* x, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto tile = cg::tiled_partition<4>(warp);
  int value = x[threadIdx.x];
  out[threadIdx.x] = tile.shfl(value, 2);
  out[64 + threadIdx.x] = tile.shfl_xor(value, 1);
  out[128 + threadIdx.x] = tile.shfl_up(value, 1);
  out[192 + threadIdx.x] = static_cast<int>(tile.ballot(value % 2));
  out[256 + threadIdx.x] = tile.any(value > 90) + 2 * tile.all(value > 10);
}
extern "C" void small_tiles(const int* x, int* out) { small_tiles_kernel<<<1, 64>>>(x, out); }

__global__ void coalesced_kernel(const int* x, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(count, static_cast<int>(active.size()));
  }
}
extern "C" void coalesced(const int* x, int* count, int n) { coalesced_kernel<<<(n + 63) / 64, 64>>>(x, count, n); }

__global__ void grid_kernel(int* out, int n) {
  auto grid = cg::this_grid();
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) out[i] = static_cast<int>(grid.size());
}
extern "C" void grid_ranks(int* out, int n) { grid_kernel<<<3, 40>>>(out, n); }

template <typename Group>
__device__ int group_sum(Group group, int value) {
  for (int offset = group.size() / 2; offset > 0; offset /= 2) value += group.shfl_xor(value, offset);
  return value;
}
__global__ void generic_kernel(const int* x, int* out) {
  auto block = cg::this_thread_block();
  out[threadIdx.x] = group_sum(cg::tiled_partition<16>(block), x[threadIdx.x]);
}
extern "C" void generic_group(const int* x, int* out) { generic_kernel<<<1, 64>>>(x, out); }

__global__ void scan_kernel(const int* x, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::inclusive_scan(warp, x[threadIdx.x]);
  out[64 + threadIdx.x] = cg::exclusive_scan(warp, x[threadIdx.x], cg::plus<int>());
}
extern "C" void tile_scan(const int* x, int* out) { scan_kernel<<<1, 64>>>(x, out); }
