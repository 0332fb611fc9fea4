// CUB's TempStorage: a barrier is needed before its next use. Names are those of CUDA 12.
#include <cub/cub.cuh>

#include "case.h"

KERNEL(reduce_reuse) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  int i = blockIdx.x * 64 + threadIdx.x;
  float sum = Reduce(storage).Sum(x[i]);  // @reduce_reuse
  if (fixed) __syncthreads();
  float largest = Reduce(storage).Reduce(x[i], cub::Max());  // @reduce_reuse
  if (threadIdx.x == 0) out[blockIdx.x] = sum + largest;
}
PLANT(reduce_reuse)

KERNEL(reduce_loop) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  for (int row = 0; row < 3; ++row) {
    float sum = Reduce(storage).Reduce(x[row * 64 + threadIdx.x], cub::Sum());  // @reduce_loop
    if (threadIdx.x == 0) out[blockIdx.x * 3 + row] = sum;
    if (fixed) __syncthreads();
  }
}
PLANT(reduce_loop)

KERNEL(scan_reuse) {
  using Scan = cub::BlockScan<float, 64>;
  __shared__ typename Scan::TempStorage storage;
  int i = blockIdx.x * 64 + threadIdx.x;
  float value = x[i];
  Scan(storage).InclusiveSum(value, value);  // @scan_reuse
  if (fixed) __syncthreads();
  Scan(storage).ExclusiveScan(value, value, 0.0f, cub::Max());  // @scan_reuse
  out[i] = value;
}
PLANT(scan_reuse)

KERNEL(sort_reuse) {
  using Sort = cub::BlockRadixSort<float, 64, 2, int>;
  __shared__ typename Sort::TempStorage storage;
  float keys[2] = {x[threadIdx.x], x[64 + threadIdx.x]};
  int values[2] = {0, 1};
  Sort(storage).Sort(keys, values);  // @sort_reuse
  if (fixed) __syncthreads();
  Sort(storage).SortDescending(keys, values);  // @sort_reuse
  out[blockIdx.x * 64 + threadIdx.x] = keys[0] + values[1];
}
PLANT(sort_reuse)

// Members of a union are the same memory.
KERNEL(union_reuse) {
  using Load = cub::BlockLoad<float, 64, 2, cub::BLOCK_LOAD_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<float, 64, 2>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
  } storage;
  float keys[2];
  Load(storage.load).Load(x, keys, 100, 0.0f);  // @union_reuse
  if (fixed) __syncthreads();
  Sort(storage.sort).SortDescending(keys);  // @union_reuse
  out[blockIdx.x * 64 + threadIdx.x] = keys[0] + keys[1];
}
PLANT(union_reuse)

KERNEL(merge_then_write) {
  using Sort = cub::BlockMergeSort<float, 64, 1>;
  __shared__ union {
    typename Sort::TempStorage sort;
    float held[64];
  } storage;
  float keys[1] = {x[threadIdx.x]};
  Sort(storage.sort).Sort(keys, [](float a, float b) { return b < a; });  // @merge_then_write
  if (fixed) __syncthreads();
  storage.held[threadIdx.x] = keys[0];  // @merge_then_write
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = storage.held[63 - threadIdx.x];
}
PLANT(merge_then_write)

// Both warps use the storage of one.
KERNEL(warp_shares) {
  using Sort = cub::WarpMergeSort<float, 1>;
  __shared__ typename Sort::TempStorage storage[2];
  int warp = threadIdx.x / 32;
  float keys[1] = {x[threadIdx.x]};
  Sort(storage[fixed ? warp : 0]).Sort(keys, [](float a, float b) { return a < b; });  // @warp_shares
  out[blockIdx.x * 64 + threadIdx.x] = keys[0];
}
PLANT(warp_shares)

KERNEL(warp_reuse) {
  using Sort = cub::WarpMergeSort<float, 1>;
  __shared__ union {
    typename Sort::TempStorage sort;
    float held[32];
  } storage[2];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float keys[1] = {x[threadIdx.x]};
  Sort(storage[warp].sort).Sort(keys, [](float a, float b) { return a < b; });  // @warp_reuse
  if (fixed) __syncwarp();
  storage[warp].held[lane] = keys[0];  // @warp_reuse
  __syncwarp();
  out[blockIdx.x * 64 + threadIdx.x] = storage[warp].held[31 - lane];
}
PLANT(warp_reuse)
