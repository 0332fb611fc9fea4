// CUB's block-wide sorts.
#include <cub/cub.cuh>

#include "case.h"

template <int items, class Key, class Value>
__device__ void load(const Key* keys, Key (&key)[items], Value (&value)[items]) {
  for (int i = 0; i < items; ++i) {
    key[i] = keys[threadIdx.x * items + i];
    value[i] = static_cast<Value>(threadIdx.x * items + i);
  }
}
template <int items, class Key, class Value>
__device__ void store(Key* keys, Value* values, const Key (&key)[items], const Value (&value)[items]) {
  for (int i = 0; i < items; ++i) keys[threadIdx.x * items + i] = key[i], values[threadIdx.x * items + i] = value[i];
}

// Ascending and descending; floats with both zeros, infinities and NaNs.
template <class Key, int bits>
__global__ void pairs_kernel(Key* keys, int* values, bool descending, int begin_bit, int end_bit) {
  using Sort = cub::BlockRadixSort<Key, 64, 5, int, bits>;
  __shared__ typename Sort::TempStorage storage;
  Key key[5];
  int value[5];
  load(keys, key, value);
  if (descending)
    Sort(storage).SortDescending(key, value, begin_bit, end_bit);
  else
    Sort(storage).Sort(key, value, begin_bit, end_bit);
  store(keys, values, key, value);
}
extern "C" void radix_pairs(float* keys, int* values) { pairs_kernel<float, 4><<<1, 64>>>(keys, values, false, 0, 32); }
extern "C" void radix_pairs_descending(float* keys, int* values) {
  pairs_kernel<float, 8><<<1, 64>>>(keys, values, true, 0, 32);
}
extern "C" void radix_some_bits(int* keys, int* values) { pairs_kernel<int, 4><<<1, 64>>>(keys, values, false, 3, 9); }
extern "C" void radix_upper_bits(float* keys, int* values) {
  pairs_kernel<float, 4><<<1, 64>>>(keys, values, true, 10, 32);
}
extern "C" void radix_signed(int* keys, int* values) { pairs_kernel<int, 4><<<1, 64>>>(keys, values, true, 0, 32); }

// To a striped arrangement.
__global__ void striped_kernel(float* keys, long long* values) {
  using Sort = cub::BlockRadixSort<float, 64, 4, long long>;
  __shared__ Sort::TempStorage storage;
  float key[4];
  long long value[4];
  load(keys, key, value);
  Sort(storage).SortDescendingBlockedToStriped(key, value);
  for (int i = 0; i < 4; ++i) keys[i * 64 + threadIdx.x] = key[i], values[i * 64 + threadIdx.x] = value[i];
}
extern "C" void radix_striped(float* keys, long long* values) { striped_kernel<<<1, 64>>>(keys, values); }

// Keys alone, twice with a barrier between; blocks sort different rows.
template <class Key>
__global__ void keys_kernel(Key* keys) {
  using Sort = cub::BlockRadixSort<Key, 32, 8>;
  __shared__ typename Sort::TempStorage storage;
  keys += blockIdx.x * 256;
  Key key[8];
  for (int i = 0; i < 8; ++i) key[i] = keys[threadIdx.x * 8 + i];
  Sort(storage).SortDescending(key);
  __syncthreads();
  Sort(storage).SortBlockedToStriped(key);
  for (int i = 0; i < 8; ++i) keys[i * 32 + threadIdx.x] = key[i];
}
extern "C" void radix_shorts(short* keys) { keys_kernel<<<2, 32>>>(keys); }
extern "C" void radix_doubles(double* keys) { keys_kernel<<<2, 32>>>(keys); }
extern "C" void radix_bytes(unsigned char* keys) { keys_kernel<<<2, 32>>>(keys); }
extern "C" void radix_longs(long long* keys) { keys_kernel<<<2, 32>>>(keys); }

// Two sorts and a load share memory.
__global__ void top_kernel(const float* x, float* values, int* indices, int n) {
  constexpr int items = 4;
  using Load = cub::BlockLoad<float, 64, items, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<float, 64, items, unsigned short>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
  } storage;
  float key[items];
  unsigned short index[items];
  Load(storage.load).Load(x + blockIdx.x * n, key, n, -1e30f);
  for (int i = 0; i < items; ++i) index[i] = threadIdx.x * items + i;
  __syncthreads();
  Sort(storage.sort).SortDescending(key, index, 0, 32);
  if (threadIdx.x < 2)
    for (int i = 0; i < items; ++i) {
      values[blockIdx.x * 8 + threadIdx.x * items + i] = key[i];
      indices[blockIdx.x * 8 + threadIdx.x * items + i] = index[i];
    }
}
extern "C" void radix_top(const float* x, float* values, int* indices, int n) {
  top_kernel<<<3, 64>>>(x, values, indices, n);
}

struct Decreasing {
  template <class T>
  __device__ bool operator()(const T& a, const T& b) const { return b < a; }
};
__global__ void merge_kernel(float* keys, long long* values) {
  using Sort = cub::BlockMergeSort<float, 64, 3, long long>;
  __shared__ Sort::TempStorage storage;
  float key[3];
  long long value[3];
  load(keys, key, value);
  Sort(storage).Sort(key, value, Decreasing());
  store(keys, values, key, value);
}
extern "C" void merge_pairs(float* keys, long long* values) { merge_kernel<<<1, 64>>>(keys, values); }

__global__ void merge_some_kernel(int* keys, int valid) {
  using Sort = cub::BlockMergeSort<int, 32, 4>;
  __shared__ Sort::TempStorage storage;
  int key[4];
  for (int i = 0; i < 4; ++i) key[i] = keys[threadIdx.x * 4 + i];
  Sort(storage).StableSort(key, Decreasing(), valid, -1);
  for (int i = 0; i < 4; ++i)
    if (threadIdx.x * 4 + i < valid) keys[threadIdx.x * 4 + i] = key[i];
}
extern "C" void merge_some(int* keys, int valid) { merge_some_kernel<<<1, 32>>>(keys, valid); }
