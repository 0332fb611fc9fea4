// Sums along the columns of a matrix, for kernels whose blocks take one row after the other.
//
// A thread has the same columns in each row, so its sums stay in registers over all rows of its block. Each block writes
// them once, and a second kernel adds those of all blocks in a fixed order: no atomics, and equal inputs give equal bits.
// Where registers don't hold a row, a thread adds to its block's sums in memory.
#pragma once

#include <algorithm>

#include <ATen/ops/empty.h>

#include "rows.cuh"

namespace {

// The sums of this thread's columns, one of kSums along each. `partial` has a row of `columns` values for each of them.
template <int kThreads, int kWidth, int kKept, int kSums>
class ColumnSums {
 public:
  __device__ __forceinline__ ColumnSums(float* partial, int columns) : partial_(partial), columns_(columns) {
    if constexpr (kKept == 0) {
      for (int column = threadIdx.x * kWidth; column < columns; column += kThreads * kWidth) {
        for (int sum = 0; sum < kSums; ++sum) {
          for (int i = 0; i < kWidth; ++i) {
            partial_[int64_t{sum} * columns_ + column + i] = 0.0f;
          }
        }
      }
    }
  }

  // Adds to value i of the vector of this number, which begins at `column`.
  __device__ __forceinline__ void add(int sum, int number, int column, int i, float value) {
    if constexpr (kKept == 0) {
      partial_[int64_t{sum} * columns_ + column + i] += value;
    } else {
      sums_[sum][number][i] += value;
    }
  }

  __device__ __forceinline__ void write() const {
    if constexpr (kKept > 0) {
#pragma unroll
      for (int sum = 0; sum < kSums; ++sum) {
#pragma unroll
        for (int number = 0; number < kKept; ++number) {
          const int column = (static_cast<int>(threadIdx.x) + number * kThreads) * kWidth;
          if (column < columns_) {
            constexpr int kStored = kWidth < 4 ? kWidth : 4;
#pragma unroll
            for (int i = 0; i < kWidth; i += kStored) {
              store(
                  partial_ + int64_t{sum} * columns_ + column + i,
                  *reinterpret_cast<const Vector<float, kStored>*>(&sums_[sum][number][i]));
            }
          }
        }
      }
    }
  }

 private:
  float* partial_;
  int columns_;
  alignas(16) float sums_[kSums][kKept > 0 ? kKept : 1][kWidth] = {};
};

constexpr int kSlices = 8;  // of the blocks' sums, which are added in parallel

// Adds the sums of all blocks, a warp for 32 of them in each slice of the blocks.
template <typename T>
__global__ void __launch_bounds__(kWarpSize * kSlices) add_blocks_kernel(
    const float* __restrict__ partial, T* __restrict__ result, int64_t blocks, int64_t count) {
  __shared__ float sums[kSlices][kWarpSize];
  const int64_t index = int64_t{blockIdx.x} * kWarpSize + threadIdx.x;
  float sum = 0.0f;
  if (index < count) {
#pragma unroll 4
    for (int64_t block = threadIdx.y; block < blocks; block += kSlices) {
      sum += partial[block * count + index];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && index < count) {
#pragma unroll
    for (int slice = 1; slice < kSlices; ++slice) {
      sum += sums[slice][threadIdx.x];
    }
    from_float(result[index], sum);
  }
}

// partial is (blocks, ...), result as large as one block's part.
template <typename T>
void add_blocks(const at::Tensor& partial, const at::Tensor& result) {
  add_blocks_kernel<T>
      <<<blocks_for(divide_up(result.numel(), kWarpSize)), dim3(kWarpSize, kSlices), 0,
         c10::cuda::getCurrentCUDAStream()>>>(
          data<float>(partial), mutable_data<T>(result), partial.size(0), result.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// As many blocks as run at the same time, with so many on a multiprocessor, but no more than rows.
int64_t resident_blocks(int64_t rows, int blocks_per_sm) {
  int device = 0;
  int multiprocessors = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return std::min<int64_t>(rows, int64_t{blocks_per_sm} * multiprocessors);
}

}  // namespace
