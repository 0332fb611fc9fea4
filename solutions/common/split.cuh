// float32 operands of a product as halves that tensor cores multiply, without the loss of float32's precision.
//
// A value times a power of two is `high + low` with high and low in half precision, 11 bits each, 22 together. Then
// high * high + high * low + low * high lacks only low * low, the last of 24 bits. Products of halves are exact in
// float32, so what is left are the sums, which `product.cuh` takes care of.
//
// Each line, that is each row or column along which a product adds up, has its own power of two, from its largest
// magnitude. It takes that to 2^14 or above, below 2^15, as half's range ends at 65504. At the other end a half has 11
// bits down to 2^-14 and fewer down to 2^-24, so a value 2^-15 times the largest of its line still has its 22 bits. The
// powers are taken off the results at the end, exactly. An infinity becomes a NaN here; a NaN stays one.
//
// Halves lie in memory as the products read them: K along lines, in chunks of 128 bytes, with the high parts of 32
// values and then their low parts. A line ends with zeros up to a whole number of steps.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <cuda_fp16.h>

#include "checks.cuh"

namespace {
namespace split {

constexpr int kChunk = 32;                 // values whose high and low parts lie together
constexpr int kChunkHalves = 2 * kChunk;
constexpr int kStepChunks = 4;             // of which lines have a whole number
constexpr int kStep = kStepChunks * kChunk;
constexpr int kTriangleMargin = 384;       // values beyond the diagonal that tiles of a triangular product may read

// An operand whose parts have been made.
struct Operand {
  at::Tensor parts;    // (batches, lines, chunks, 2, kChunk)
  at::Tensor largest;  // (batches, lines): magnitude of each line
  int64_t batches;
  int64_t lines;
  int64_t chunks;

  // Neither the lines nor K may be 0.
  Operand(const at::Tensor& values, int64_t lines, int64_t K)
      : batches(values.numel() / (lines * K)), lines(lines), chunks(divide_up(K, kStep) * kStepChunks) {
    parts = at::empty({batches, lines, chunks * kChunkHalves}, values.options().dtype(at::kHalf));
    largest = at::empty({batches, lines}, values.options());
  }
  __half* halves() const { return reinterpret_cast<__half*>(parts.mutable_data_ptr<at::Half>()); }
  float* magnitudes() const { return largest.mutable_data_ptr<float>(); }
};

__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);  // for -126 to 127
}

// The exponent of a line's power of two. At most 126, which takes even the smallest float to where halves hold it.
__device__ __forceinline__ int shift_for(float largest) {
  const int exponent = (__float_as_int(largest) >> 23) - 127;
  return min(14 - exponent, 126);
}

// A sum of products times 2^-shift, in two steps because the power alone may be out of range.
__device__ __forceinline__ float scaled_back(float sum, int shift) {
  const int half = shift / 2;
  return sum * power_of_two(-half) * power_of_two(half - shift);
}

// Eight values as high and low parts. `to` is the place of the high ones.
__device__ __forceinline__ void write_parts(const float (&values)[8], float scale, __half* to) {
  alignas(sizeof(uint4)) __half high[8];
  alignas(sizeof(uint4)) __half low[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float scaled = values[i] * scale;
    high[i] = __float2half_rn(scaled);
    low[i] = __float2half_rn(scaled - __half2float(high[i]));
  }
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(high);
  *reinterpret_cast<uint4*>(to + kChunk) = *reinterpret_cast<const uint4*>(low);
}

// Where the high part of value k of a line is.
__device__ __forceinline__ int64_t place_of(int64_t k) {
  return k / kChunk * kChunkHalves + k % kChunk;
}

// ---- Operands (batches, lines, K) ----

constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / kWarpSize;
constexpr int kKept = 4;  // groups of eight values that a thread keeps, so that they are read once

// Eight values of a row, zeros beyond its end. With vectors the row begins at a multiple of 16 bytes.
__device__ __forceinline__ void load_eight(
    const float* row, int64_t first, int64_t length, bool vectors, float (&values)[8]) {
  if (vectors && first + 8 <= length) {
    *reinterpret_cast<float4*>(values) = __ldcs(reinterpret_cast<const float4*>(row + first));
    *reinterpret_cast<float4*>(values + 4) = __ldcs(reinterpret_cast<const float4*>(row + first + 4));
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[i] = first + i < length ? __ldcs(row + first + i) : 0.0f;
    }
  }
}

__device__ __forceinline__ float largest_of(float largest, const float (&values)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    largest = fmaxf(largest, fabsf(values[i]));  // a NaN does not count; it comes back when values are split
  }
  return largest;
}

// The largest value of Threads neighbouring threads, for each of them. All threads of the block have to call it.
template <int Threads>
__device__ __forceinline__ float shared_largest(float largest) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, offset));
  }
  if constexpr (Threads > kWarpSize) {
    constexpr int kWarps = Threads / kWarpSize;
    __shared__ float of_warps[kRowWarps];
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    if (threadIdx.x % kWarpSize == 0) {
      of_warps[warp] = largest;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      largest = fmaxf(largest, of_warps[warp / kWarps * kWarps + i]);
    }
  }
  return largest;
}

// Threads neighbouring threads have a row. Each has every Threads-th group of eight values; what it can't keep in
// registers it reads twice. Rows of a lower triangular matrix are read and written as far as tiles need them.
template <int Threads>
__global__ void __launch_bounds__(kRowThreads) split_rows_kernel(
    const float* __restrict__ values,
    float* __restrict__ largest_of_rows,
    __half* __restrict__ parts,
    int64_t rows,
    int64_t K,
    int64_t padded,
    bool vectors,
    bool lower) {
  constexpr int kRows = kRowThreads / Threads;
  constexpr int64_t kAdvance = Threads * 8;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / Threads;
  const int64_t all = row < rows ? padded : 0;  // to be written
  const int64_t end = lower ? min(((row + kTriangleMargin) / kChunk + 1) * kChunk, all) : all;
  const int64_t length = min(end, K);  // to be read
  const float* const from = values + row * K;
  __half* const to = parts + row * padded * 2;
  const int64_t first = threadIdx.x % Threads * 8;

  alignas(sizeof(float4)) float kept[kKept][8];
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    load_eight(from, first + i * kAdvance, length, vectors, kept[i]);
  }
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    largest = largest_of(largest, kept[i]);
  }
  alignas(sizeof(float4)) float eight[8];
  for (int64_t at = first + kKept * kAdvance; at < length; at += kAdvance) {
    load_eight(from, at, length, vectors, eight);
    largest = largest_of(largest, eight);
  }
  largest = shared_largest<Threads>(largest);
  if (first == 0 && row < rows) {
    largest_of_rows[row] = largest;
  }

  const float scale = power_of_two(shift_for(largest));
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int64_t at = first + i * kAdvance;
    if (at < end) {
      write_parts(kept[i], scale, to + place_of(at));
    }
  }
  for (int64_t at = first + kKept * kAdvance; at < end; at += kAdvance) {
    load_eight(from, at, length, vectors, eight);
    write_parts(eight, scale, to + place_of(at));
  }
}

template <int Threads>
void split_rows(const at::Tensor& values, const Operand& operand, int64_t K, bool lower) {
  const int64_t rows = operand.batches * operand.lines;
  const int64_t blocks = divide_up(rows, kRowThreads / Threads);
  TORCH_CHECK(blocks <= kMaxBlocks, "an operand of shape ", values.sizes(), " is too large for one launch");
  split_rows_kernel<Threads>
      <<<static_cast<unsigned int>(blocks), kRowThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
          values.const_data_ptr<float>(), operand.magnitudes(), operand.halves(), rows, K, operand.chunks * kChunk,
          K % 4 == 0 && is_aligned(values), lower);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Splits (batches, lines, K) or (lines, K). With `lower` it is one lower triangular matrix, and the rest is not made.
Operand rows_of(const at::Tensor& values, bool lower = false) {
  const int64_t K = values.size(-1);
  const Operand operand(values, values.size(-2), K);
  if (K <= kWarpSize * 8 * kKept) {
    split_rows<kWarpSize>(values, operand, K, lower);
  } else if (K <= 4 * kWarpSize * 8 * kKept) {
    split_rows<4 * kWarpSize>(values, operand, K, lower);
  } else {
    split_rows<kRowThreads>(values, operand, K, lower);
  }
  return operand;
}

// ---- Operands (batches, K, lines) ----

constexpr int kLargestRows = 256;  // of a block: 32 loads a thread
constexpr int kSplitColumns = 64;
constexpr int kBlockRows = 8;
constexpr int kColumnThreads = kWarpSize * kBlockRows;

// Raises the largest magnitudes, zeros at first. Blocks above the diagonal of a lower triangular matrix have no work.
__global__ void __launch_bounds__(kColumnThreads) largest_kernel(
    const float* __restrict__ values, float* __restrict__ largest_of_columns, int64_t columns, int64_t K, bool lower) {
  __shared__ float found[kBlockRows][kWarpSize];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpSize + threadIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kLargestRows;
  const int64_t last = min(first + kLargestRows, K);
  if (lower && last <= static_cast<int64_t>(blockIdx.x) * kWarpSize) {
    return;
  }
  values += blockIdx.z * K * columns;
  float largest = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (int64_t k = first + threadIdx.y; k < last; k += kBlockRows) {
      largest = fmaxf(largest, fabsf(__ldg(values + k * columns + column)));
    }
  }
  found[threadIdx.y][threadIdx.x] = largest;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
#pragma unroll
    for (int row = 1; row < kBlockRows; ++row) {
      largest = fmaxf(largest, found[row][threadIdx.x]);
    }
    int* const of_column = reinterpret_cast<int*>(largest_of_columns + blockIdx.z * columns + column);
    atomicMax(of_column, __float_as_int(largest));  // magnitudes order like integers
  }
}

// One chunk of 64 columns, turned in shared memory. Rows of 65 floats: the threads of a warp, eight columns by four
// groups of eight rows, read from 32 different banks.
__global__ void __launch_bounds__(kColumnThreads) split_columns_kernel(
    const float* __restrict__ values,
    const float* __restrict__ largest_of_columns,
    __half* __restrict__ parts,
    int64_t columns,
    int64_t K,
    bool lower) {
  constexpr int kGroups = kChunk / 8;
  constexpr int kLoadsDown = kChunk / kBlockRows;
  constexpr int kLoadsAcross = kSplitColumns / kWarpSize;
  static_assert(kSplitColumns * kGroups == kColumnThreads, "one group of eight a thread");
  __shared__ float tile[kChunk][kSplitColumns + 1];
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kSplitColumns;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kChunk;
  if (lower && first_row + kChunk + kTriangleMargin <= first_column) {
    return;  // no tile reads that far up
  }
  values += blockIdx.z * K * columns;

  // All loads are under way before the first is waited for.
  float loaded[kLoadsDown][kLoadsAcross];
#pragma unroll
  for (int i = 0; i < kLoadsDown; ++i) {
    const int64_t row = first_row + i * kBlockRows + threadIdx.y;
#pragma unroll
    for (int j = 0; j < kLoadsAcross; ++j) {
      const int64_t column = first_column + j * kWarpSize + threadIdx.x;
      const bool inside = row < K && column < columns;
      loaded[i][j] = inside ? __ldcs(values + row * columns + column) : 0.0f;
    }
  }
#pragma unroll
  for (int i = 0; i < kLoadsDown; ++i) {
#pragma unroll
    for (int j = 0; j < kLoadsAcross; ++j) {
      tile[i * kBlockRows + threadIdx.y][j * kWarpSize + threadIdx.x] = loaded[i][j];
    }
  }
  __syncthreads();

  const int thread = threadIdx.y * kWarpSize + threadIdx.x;
  const int own_column = thread / kGroups;
  const int own_group = thread % kGroups * 8;
  if (first_column + own_column >= columns) {
    return;
  }
  float eight[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    eight[i] = tile[own_group + i][own_column];
  }
  const int64_t line = blockIdx.z * columns + first_column + own_column;
  __half* const to = parts + (line * gridDim.y + blockIdx.y) * kChunkHalves + own_group;
  write_parts(eight, power_of_two(shift_for(largest_of_columns[line])), to);
}

// In two passes over (batches, K, lines) or (K, lines): the second turns it.
void split_columns(const at::Tensor& values, const Operand& operand, bool lower) {
  const int64_t K = values.size(-2);
  const int64_t columns = operand.lines;
  TORCH_CHECK(
      operand.chunks <= kMaxGridY && columns <= kMaxBlocks,
      "an operand of shape ", values.sizes(), " is too large for one launch");
  const auto stream = c10::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(cudaMemsetAsync(operand.magnitudes(), 0, operand.largest.numel() * sizeof(float), stream));
  const auto batches = static_cast<unsigned int>(operand.batches);
  const dim3 block(kWarpSize, kBlockRows);
  const dim3 largest_grid(
      static_cast<unsigned int>(divide_up(columns, kWarpSize)),
      static_cast<unsigned int>(divide_up(K, kLargestRows)),
      batches);
  largest_kernel<<<largest_grid, block, 0, stream>>>(
      values.const_data_ptr<float>(), operand.magnitudes(), columns, K, lower);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const dim3 split_grid(
      static_cast<unsigned int>(divide_up(columns, kSplitColumns)), static_cast<unsigned int>(operand.chunks), batches);
  split_columns_kernel<<<split_grid, block, 0, stream>>>(
      values.const_data_ptr<float>(), operand.magnitudes(), operand.halves(), columns, K, lower);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace split
}  // namespace
