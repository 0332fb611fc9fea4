// CUB's block-wide sums, scans, loads and stores.
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include "case.h"

template <cub::BlockReduceAlgorithm algorithm>
__global__ void sum_kernel(const float* x, float* out) {
  typedef cub::BlockReduce<float, 128, algorithm> BlockReduce;
  __shared__ typename BlockReduce::TempStorage storage;
  float sum = BlockReduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
extern "C" void block_sum(const float* x, float* out) {
  sum_kernel<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<3, 128>>>(x, out);
  sum_kernel<cub::BLOCK_REDUCE_RAKING><<<3, 128>>>(x, out + 3);
  sum_kernel<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<3, 128>>>(x, out + 6);
}

// A TempStorage in a union, with barriers between its uses; several items a thread; some threads only.
__global__ void reduce_kernel(const int* x, int* out, int valid) {
  using Reduce = cub::BlockReduce<int, 96>;
  __shared__ union {
    Reduce::TempStorage reduce;
    int other[4];
  } storage;
  int items[4];
  for (int i = 0; i < 4; ++i) items[i] = x[threadIdx.x * 4 + i];
  int largest = Reduce(storage.reduce).Reduce(items, cuda::maximum<>{});
  __syncthreads();
  int sum = Reduce(storage.reduce).Sum(items);
  __syncthreads();
  int smallest = Reduce(storage.reduce).Reduce(items[0], cuda::minimum<int>(), valid);
  __syncthreads();
  int some = Reduce(storage.reduce).Sum(items[1], valid);
  if (threadIdx.x == 0) out[0] = largest, out[1] = sum, out[2] = smallest, out[3] = some;
}
extern "C" void block_reduce(const int* x, int* out, int valid) { reduce_kernel<<<1, 96>>>(x, out, valid); }

// The result reaches all threads through shared memory. The block has three dimensions, and CUB declares the TempStorage.
__global__ void mean_kernel(const float* x, float* out) {
  typedef cub::BlockReduce<float, 8, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 2> BlockReduce;
  __shared__ float mean;
  int t = (threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x;
  float sum = BlockReduce().Sum(x[t]);
  if (t == 0) mean = sum / 64;
  __syncthreads();
  out[t] = x[t] - mean;
}
extern "C" void block_mean(const float* x, float* out) { mean_kernel<<<1, dim3(8, 4, 2)>>>(x, out); }

__global__ void arg_max_kernel(const float* x, int* out, int columns) {
  using Pair = cub::KeyValuePair<int, float>;
  using Reduce = cub::BlockReduce<Pair, 64>;
  __shared__ Reduce::TempStorage storage;
  Pair high(-1, -1e30f), low(-1, 1e30f);
  for (int i = threadIdx.x; i < columns; i += 64) {
    Pair pair(i, x[blockIdx.x * columns + i]);
    high = cub::ArgMax()(high, pair);
    low = cub::ArgMin()(low, pair);
  }
  high = Reduce(storage).Reduce(high, cub::ArgMax());
  __syncthreads();
  low = Reduce(storage).Reduce(low, cub::ArgMin());
  if (threadIdx.x == 0) out[2 * blockIdx.x] = high.key, out[2 * blockIdx.x + 1] = low.key;
}
extern "C" void block_arg_max(const float* x, int* out, int rows, int columns) {
  arg_max_kernel<<<rows, 64>>>(x, out, columns);
}

template <cub::BlockScanAlgorithm algorithm>
__global__ void scan_kernel(const int* x, int* out) {
  using Scan = cub::BlockScan<int, 128, algorithm>;
  __shared__ typename Scan::TempStorage storage;
  int t = threadIdx.x, value, total;
  Scan(storage).InclusiveSum(x[t], value);
  out[t] = value;
  __syncthreads();
  Scan(storage).ExclusiveSum(x[t], value, total);
  out[128 + t] = value + total;
  __syncthreads();
  Scan(storage).ExclusiveScan(x[t], value, 7, cuda::maximum<>{});
  out[256 + t] = value;
  __syncthreads();
  Scan(storage).InclusiveScan(x[t], value, cuda::minimum<>{}, total);
  out[384 + t] = value + 1000 * total;
}
extern "C" void block_scan(const int* x, int* out) {
  scan_kernel<cub::BLOCK_SCAN_RAKING><<<1, 128>>>(x, out);
  scan_kernel<cub::BLOCK_SCAN_RAKING_MEMOIZE><<<1, 128>>>(x, out + 512);
  scan_kernel<cub::BLOCK_SCAN_WARP_SCANS><<<1, 128>>>(x, out + 1024);
}

// Exclusive without an initial value: the first output is undefined. The operator does not commute.
struct Second {
  __device__ int operator()(int a, int b) const { return b < 0 ? a : b; }
};
__global__ void scan_items_kernel(const int* x, int* out) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ Scan::TempStorage storage;
  int items[3], before[3], total;
  for (int i = 0; i < 3; ++i) items[i] = x[threadIdx.x * 3 + i];
  Scan(storage).ExclusiveScan(items, before, Second());
  for (int i = 0; i < 3; ++i) out[threadIdx.x * 3 + i] = threadIdx.x == 0 && i == 0 ? 0 : before[i];
  __syncthreads();
  Scan(storage).InclusiveScan(items, before, Second(), total);
  for (int i = 0; i < 3; ++i) out[192 + threadIdx.x * 3 + i] = before[i] * 100 + total;
  __syncthreads();
  Scan(storage).ExclusiveScan(items, items, 5, Second(), total);
  for (int i = 0; i < 3; ++i) out[384 + threadIdx.x * 3 + i] = items[i] * 100 + total;
}
extern "C" void block_scan_items(const int* x, int* out) { scan_items_kernel<<<1, 64>>>(x, out); }

// A running total over tiles, kept by the callback.
struct Running {
  float total;
  __device__ float operator()(float added) {
    float before = total;
    total += added;
    return before;
  }
};
__global__ void running_kernel(const float* x, float* out, int n) {
  using Load = cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<float, 64>;
  using Store = cub::BlockStore<float, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    Load::TempStorage load;
    Scan::TempStorage scan;
    Store::TempStorage store;
  } storage;
  Running running{0.0f};
  for (int start = 0; start < n; start += 256) {
    float items[4];
    Load(storage.load).Load(x + start, items, n - start, 0.0f);
    __syncthreads();
    Scan(storage.scan).InclusiveSum(items, items, running);
    __syncthreads();
    Store(storage.store).Store(out + start, items, n - start);
    __syncthreads();
  }
}
extern "C" void block_running_sum(const float* x, float* out, int n) { running_kernel<<<1, 64>>>(x, out, n); }

template <cub::BlockLoadAlgorithm load, cub::BlockStoreAlgorithm store>
__global__ void copy_kernel(const int* x, int* out, int n) {
  using Load = cub::BlockLoad<int, 64, 4, load>;
  using Store = cub::BlockStore<int, 64, 4, store>;
  __shared__ typename Load::TempStorage load_storage;
  __shared__ typename Store::TempStorage store_storage;
  int items[4];
  Load(load_storage).Load(x, items, n, -1);
  for (int i = 0; i < 4; ++i) items[i] = items[i] * 1000 + threadIdx.x * 4 + i;
  Store(store_storage).Store(out, items);
}
extern "C" void block_copies(const int* x, int* out, int n) {
  copy_kernel<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT><<<1, 64>>>(x, out, n);
  copy_kernel<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE><<<1, 64>>>(x, out + 256, n);
  copy_kernel<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE><<<1, 64>>>(x, out + 512, n);
  copy_kernel<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE><<<1, 64>>>(x, out + 768, n);
  copy_kernel<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED><<<1, 64>>>(x, out + 1024, n);
  copy_kernel<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED, cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>
      <<<1, 64>>>(x, out + 1280, n);
}

__global__ void exchange_kernel(const int* x, int* out) {
  using Exchange = cub::BlockExchange<int, 64, 3>;
  __shared__ Exchange::TempStorage storage;
  int items[3], ranks[3];
  cub::LoadDirectBlocked(threadIdx.x, x, items);
  Exchange(storage).BlockedToStriped(items);
  cub::StoreDirectBlocked(threadIdx.x, out, items);
  __syncthreads();
  Exchange(storage).StripedToBlocked(items, items);
  __syncthreads();
  Exchange(storage).BlockedToWarpStriped(items);
  cub::StoreDirectBlocked(threadIdx.x, out + 192, items);
  __syncthreads();
  for (int i = 0; i < 3; ++i) ranks[i] = 191 - (threadIdx.x * 3 + i);
  cub::LoadDirectStriped<64>(threadIdx.x, x, items);
  Exchange(storage).ScatterToBlocked(items, ranks);
  cub::StoreDirectStriped<64>(threadIdx.x, out + 384, items);
}
extern "C" void block_exchange(const int* x, int* out) { exchange_kernel<<<1, 64>>>(x, out); }

template <cub::BlockHistogramAlgorithm algorithm>
__global__ void histogram_kernel(const unsigned char* x, unsigned* out) {
  using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 32, algorithm>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ unsigned counts[32];
  unsigned char items[4];
  for (int i = 0; i < 4; ++i) items[i] = x[threadIdx.x * 4 + i];
  Histogram(storage).Histogram(items, counts);
  __syncthreads();
  if (threadIdx.x < 32) out[threadIdx.x] = counts[threadIdx.x];
}
extern "C" void block_histogram(const unsigned char* x, unsigned* out) {
  histogram_kernel<cub::BLOCK_HISTO_SORT><<<1, 64>>>(x, out);
  histogram_kernel<cub::BLOCK_HISTO_ATOMIC><<<1, 64>>>(x, out + 32);
}
