// CUB's device-wide algorithms.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include "case.h"

// Calls an algorithm as CUB wants it: for the size of its temporary storage, then with it.
template <class Algorithm>
void with_storage(Algorithm algorithm) {
  void* storage = nullptr;
  size_t bytes = 0;
  algorithm(storage, bytes);
  cudaMalloc(&storage, bytes);
  algorithm(storage, bytes);
  cudaFree(storage);
}

extern "C" void device_sums(const float* x, float* out, int n) {
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::Sum(storage, bytes, x, out, n); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::Max(storage, bytes, x, out + 1, n); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::Min(storage, bytes, x, out + 2, n, cudaStream_t(0)); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::Sum(storage, bytes, x, out + 3, 0); });
}

struct Product {
  __host__ __device__ unsigned operator()(unsigned a, unsigned b) const { return a * b; }
};
extern "C" void device_reduce(const unsigned* x, unsigned* out, int n) {
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceReduce::Reduce(storage, bytes, x, out, n, Product(), 3u);
  });
}

template <class Pair>
__global__ void unpack_kernel(const Pair* pairs, int* out) { out[threadIdx.x] = pairs[threadIdx.x].key; }
extern "C" void device_arg_max(const float* x, float* values, long long* indices, int n) {
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::ArgMax(storage, bytes, x, values, indices, n); });
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceReduce::ArgMin(storage, bytes, x, values + 1, indices + 1, n);
  });
}

// The older interface.
extern "C" void device_arg_max_pair(const float* x, int* out, int n) {
  cub::KeyValuePair<int, float>* pairs = nullptr;
  cudaMalloc(&pairs, 2 * sizeof *pairs);
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::ArgMax(storage, bytes, x, pairs, n); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceReduce::ArgMin(storage, bytes, x, pairs + 1, n); });
  unpack_kernel<<<1, 2>>>(pairs, out);
  cudaDeviceSynchronize();
  cudaFree(pairs);
}

extern "C" void device_scans(const int* x, int* out, int n) {
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceScan::InclusiveSum(storage, bytes, x, out, n); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceScan::ExclusiveSum(storage, bytes, x, out + n, n); });
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceScan::InclusiveScan(storage, bytes, x, out + 2 * n, cuda::maximum<>{}, n);
  });
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceScan::ExclusiveScan(storage, bytes, x, out + 3 * n, cuda::minimum<>{}, 50, n);
  });
}

extern "C" void device_sort_keys(const float* x, float* out, int n) {
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceRadixSort::SortKeys(storage, bytes, x, out, n); });
  with_storage([&](void* storage, size_t& bytes) { cub::DeviceRadixSort::SortKeysDescending(storage, bytes, x, out + n, n); });
}

extern "C" void device_sort_pairs(const int* keys, const long long* values, int* keys_out, long long* values_out, int n) {
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceRadixSort::SortPairs(storage, bytes, keys, keys_out, values, values_out, n);
  });
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceRadixSort::SortPairsDescending(storage, bytes, keys, keys_out + n, values, values_out + n, n, 2, 5);
  });
}

extern "C" void device_sort_buffers(int* keys, int* other_keys, int* values, int* other_values, int* out, int n) {
  cub::DoubleBuffer<int> key_buffer(keys, other_keys), value_buffer(values, other_values);
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceRadixSort::SortPairs(storage, bytes, key_buffer, value_buffer, n);
  });
  cudaMemcpy(out, key_buffer.Current(), n * sizeof(int), cudaMemcpyDeviceToDevice);
  cudaMemcpy(out + n, value_buffer.Current(), n * sizeof(int), cudaMemcpyDeviceToDevice);
}

extern "C" void device_segments(const int* x, const int* offsets, int* out, int* sorted, int segments, int n) {
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceSegmentedReduce::Sum(storage, bytes, x, out, segments, offsets, offsets + 1);
  });
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceSegmentedReduce::Max(storage, bytes, x, out + segments, segments, offsets, offsets + 1);
  });
  cub::KeyValuePair<int, int>* pairs = nullptr;
  cudaMalloc(&pairs, segments * sizeof *pairs);
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceSegmentedReduce::ArgMin(storage, bytes, x, pairs, segments, offsets, offsets + 1);
  });
  unpack_kernel<<<1, segments>>>(pairs, out + 2 * segments);
  cudaDeviceSynchronize();
  cudaFree(pairs);
  with_storage([&](void* storage, size_t& bytes) {
    cub::DeviceSegmentedRadixSort::SortKeys(storage, bytes, x, sorted, n, segments, offsets, offsets + 1);
  });
}

// Too little temporary storage is an error, and nothing is computed.
extern "C" void device_little_storage(const float* x, float* out, int n) {
  float* storage = nullptr;
  size_t bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, x, out, n);
  cudaMalloc(&storage, bytes);
  bytes = 0;
  const float refused = cub::DeviceReduce::Sum(storage, bytes, x, out, n) == cudaErrorInvalidValue;
  cudaMemcpy(out + 1, &refused, sizeof(float), cudaMemcpyHostToDevice);
  cudaGetLastError();
  cudaFree(storage);
}
