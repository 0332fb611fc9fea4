// CUB's warp-wide sums, scans and sorts.
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>

#include "case.h"

__global__ void reduce_kernel(const int* x, int* out, int valid) {
  using Reduce = cub::WarpReduce<int>;
  __shared__ Reduce::TempStorage storage[3];
  int warp = threadIdx.x / 32, value = x[threadIdx.x];
  int sum = Reduce(storage[warp]).Sum(value);
  __syncwarp();
  int largest = Reduce(storage[warp]).Reduce(value, cuda::maximum<>{}, valid);
  if (threadIdx.x % 32 == 0) out[2 * warp] = sum, out[2 * warp + 1] = largest;
}
extern "C" void warp_reduce(const int* x, int* out, int valid) { reduce_kernel<<<1, 96>>>(x, out, valid); }

__global__ void small_reduce_kernel(const float* x, float* out) {
  using Reduce = cub::WarpReduce<float, 8>;
  __shared__ Reduce::TempStorage storage[8];
  float sum = Reduce(storage[threadIdx.x / 8]).Sum(x[threadIdx.x]);
  if (threadIdx.x % 8 == 0) out[threadIdx.x / 8] = sum;
}
extern "C" void small_warp_reduce(const float* x, float* out) { small_reduce_kernel<<<1, 64>>>(x, out); }

__global__ void segments_kernel(const int* x, const int* heads, int* out) {
  using Reduce = cub::WarpReduce<int>;
  __shared__ Reduce::TempStorage storage;
  int t = threadIdx.x, head = t == 0 || heads[t];
  int sum = Reduce(storage).HeadSegmentedSum(x[t], head);
  if (head) out[t] = sum;
  __syncwarp();
  int tail = t < 31 && heads[t + 1];
  int largest = Reduce(storage).TailSegmentedReduce(x[t], tail, cuda::maximum<>{});
  if (head) out[32 + t] = largest;
}
extern "C" void warp_segments(const int* x, const int* heads, int* out) { segments_kernel<<<1, 32>>>(x, heads, out); }

__global__ void scan_kernel(const int* x, int* out) {
  using Scan = cub::WarpScan<int>;
  __shared__ Scan::TempStorage storage[2];
  int warp = threadIdx.x / 32, t = threadIdx.x, value = x[t], result, other, total;
  Scan(storage[warp]).InclusiveSum(value, result, total);
  out[t] = result * 1000 + total;
  // No __syncwarp(): scans of a warp are shuffles, which do not touch the storage.
  Scan(storage[warp]).ExclusiveSum(value, result);
  out[64 + t] = result;
  __syncwarp();
  Scan(storage[warp]).ExclusiveScan(value, result, 11, cuda::maximum<>{});
  out[128 + t] = result;
  __syncwarp();
  Scan(storage[warp]).Scan(value, result, other, cuda::minimum<>{});
  out[192 + t] = t % 32 ? result * 1000 + other : result;
  __syncwarp();
  out[256 + t] = Scan(storage[warp]).Broadcast(value, 5);
}
extern "C" void warp_scan(const int* x, int* out) { scan_kernel<<<1, 64>>>(x, out); }

struct Greater {
  __device__ bool operator()(const float& a, const float& b) const { return a > b; }
};
// Each warp sorts by itself, twice with the same TempStorage: the sort begins with a barrier.
__global__ void sort_kernel(float* keys, int* values) {
  using Sort = cub::WarpMergeSort<float, 3, 32, int>;
  __shared__ Sort::TempStorage storage[2];
  float key[3];
  int value[3];
  for (int i = 0; i < 3; ++i) key[i] = keys[threadIdx.x * 3 + i], value[i] = threadIdx.x * 3 + i;
  Sort(storage[threadIdx.x / 32]).Sort(key, value, Greater());
  for (int i = 0; i < 3; ++i) key[i] += 0.5f;
  Sort(storage[threadIdx.x / 32]).StableSort(key, value, Greater());
  for (int i = 0; i < 3; ++i) keys[threadIdx.x * 3 + i] = key[i], values[threadIdx.x * 3 + i] = value[i];
}
extern "C" void warp_sort(float* keys, int* values) { sort_kernel<<<1, 64>>>(keys, values); }

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};
// Logical warps of 16 threads, of whose items some are valid.
__global__ void small_sort_kernel(int* keys, int valid) {
  using Sort = cub::WarpMergeSort<int, 2, 16>;
  __shared__ Sort::TempStorage storage[2];
  int key[2] = {keys[threadIdx.x * 2], keys[threadIdx.x * 2 + 1]};
  Sort(storage[threadIdx.x / 16]).Sort(key, Less(), valid, 1 << 20);
  for (int i = 0; i < 2; ++i)
    if (threadIdx.x % 16 * 2 + i < valid) keys[threadIdx.x * 2 + i] = key[i];
}
extern "C" void small_warp_sort(int* keys, int valid) { small_sort_kernel<<<1, 32>>>(keys, valid); }
