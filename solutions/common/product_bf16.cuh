// A block's tile of a product of bfloat16 matrices that both have K along their rows, by mma.sync: for every GPU from
// compute capability 8.0.
//
// Shared memory holds kStages chunks of K: one that is multiplied, and those that asynchronous copies fill. A tile has
// 128 columns and 128 rows, or 32 where there are few. Its sums are float32.
#pragma once

#include <cuda_pipeline.h>

#include "tensor_cores.cuh"
#include "vectors.cuh"

namespace {
namespace bf16_product {

using Half = Bfloat16;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kColumns = 128;
constexpr int kManyRows = 128;
constexpr int kFewRows = 32;
constexpr int kChunk = 32;  // steps of K
constexpr int kStages = 4;
constexpr int kCopy = kFull<Half>;
constexpr int kStride = kChunk + kCopy;  // of a row in shared memory: eight rows begin in different banks
constexpr int kFragment = 16;            // rows, columns and steps of K that one ldmatrix loads

// Warps have `down` parts of the rows of a tile, and of its columns what that leaves.
template <int kRows>
struct Tile {
  static constexpr int down = kRows == kManyRows ? 2 : 1;
  static constexpr int rows = kRows / down;  // of a warp
  static constexpr int columns = kColumns / (kWarps / down);
  static constexpr int stage = (kRows + kColumns) * kStride;
  static constexpr int shared_bytes = kStages * stage * static_cast<int>(sizeof(Half));
};

// Rows of a matrix from the first of a tile on. Those from `end` on don't belong to it.
struct Rows {
  const Half* values;  // of the matrix
  int first;
  int end;
};

struct Depth {
  int width;     // K
  bool vectors;  // whether rows are whole vectors of 16 bytes

  Depth(const at::Tensor& left, const at::Tensor& right)
      : width(static_cast<int>(left.size(-1))),
        vectors(width % kCopy == 0 && is_aligned(left) && is_aligned(right)) {}
};

// Rows of the output from `row` up to `end`, with matrix `batch` of the right operand, and columns from `column` on.
struct Place {
  int batch;
  int row;
  int end;
  int column;
};

// Where tile number `tile` of these rows and all columns is. Tiles go down 2048 rows before the next columns. What all
// blocks use at a time is then a near square of the output, and comes from L2 after its first use.
template <int kRows, int kTileColumns>
__device__ __forceinline__ Place place_of(int tile, const Place& rows, int columns) {
  constexpr int kDown = 2048 / kRows;
  const int across = (columns + kTileColumns - 1) / kTileColumns;
  const int first = tile / (kDown * across) * kDown;
  const int down = min(kDown, (rows.end - rows.row + kRows - 1) / kRows - first);
  const int place = tile % (kDown * across);
  return {rows.batch, rows.row + (first + place % down) * kRows, rows.end, place / down * kTileColumns};
}

// Starts the copies of a chunk of K, from step k on, of kCount rows. Beyond the last row that one is copied again.
template <int kCount>
__device__ __forceinline__ void copy_rows(Half* to, const Rows& rows, int k, const Depth& depth) {
#pragma unroll
  for (int i = threadIdx.x; i < kCount * (kChunk / kCopy); i += kThreads) {
    const int row = i / (kChunk / kCopy);
    const int column = i % (kChunk / kCopy) * kCopy;
    Half* const place = to + row * kStride + column;
    const Half* const from = rows.values + int64_t{min(rows.first + row, rows.end - 1)} * depth.width + k + column;
    if (depth.vectors && k + column < depth.width) {
      __pipeline_memcpy_async(place, from, sizeof(uint4));
    } else {
      for (int j = 0; j < kCopy; ++j) {
        place[j] = k + column + j < depth.width ? from[j] : __float2bfloat16_rn(0.0f);
      }
    }
  }
}

// Calls `epilogue(row, column, first, second)` with the sums of two neighbouring columns. The columns may be beyond the
// end of the right operand; rows are not. All threads of the block must call it, once.
template <int kRows, class Epilogue>
__device__ __forceinline__ void multiply_tile(
    const Rows& left, const Rows& right, const Depth& depth, const Epilogue& epilogue) {
  using T = Tile<kRows>;
  extern __shared__ uint4 shared[];
  Half* const stages = reinterpret_cast<Half*>(shared);
  const int chunks = (depth.width + kChunk - 1) / kChunk;
  const auto copy_chunk = [&](int chunk) {
    if (chunk < chunks) {
      Half* const to = stages + chunk % kStages * T::stage;
      copy_rows<kRows>(to, left, chunk * kChunk, depth);
      copy_rows<kColumns>(to + kRows * kStride, right, chunk * kChunk, depth);
    }
    __pipeline_commit();  // those beyond the end too: the number of those that may be open is always the same
  };

  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int row = warp % T::down * T::rows;
  const int column = warp / T::down * T::columns;
  float sums[T::rows / kFragment][T::columns / 8][4] = {};
  for (int chunk = 0; chunk < kStages - 1; ++chunk) {
    copy_chunk(chunk);
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // the chunk is there for all, and all have left the stage that is filled now
    copy_chunk(chunk + kStages - 1);
    const Half* const stage = stages + chunk % kStages * T::stage;
#pragma unroll
    for (int step = 0; step < kChunk; step += kFragment) {
      uint32_t lefts[T::rows / kFragment][4];
#pragma unroll
      for (int i = 0; i < T::rows / kFragment; ++i) {
        load_left(lefts[i], stage + (row + i * kFragment) * kStride + step, kStride);
      }
#pragma unroll
      for (int j = 0; j < T::columns / kFragment; ++j) {
        uint32_t rights[4];
        load_right(rights, stage + (kRows + column + j * kFragment) * kStride + step, kStride);
#pragma unroll
        for (int i = 0; i < T::rows / kFragment; ++i) {
          multiply_fragment<Half>(sums[i][2 * j], lefts[i], rights);
          multiply_fragment<Half>(sums[i][2 * j + 1], lefts[i], rights + 2);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * T::rows / kFragment; ++i) {
    const int own = left.first + row + i * 8 + lane / 4;
    if (own < left.end) {
#pragma unroll
      for (int j = 0; j < T::columns / 8; ++j) {
        const float* const two = sums[i / 2][j] + i % 2 * 2;
        epilogue(own, right.first + column + j * 8 + lane % 4 * 2, two[0], two[1]);
      }
    }
  }
}

// Writes two neighbouring values of a row, as far as it has so many columns. The first column is even.
__device__ __forceinline__ void write_two(Half* row, int column, int columns, float first, float second) {
  if (columns % 2 == 0 && column < columns) {
    *reinterpret_cast<__nv_bfloat162*>(row + column) = __floats2bfloat162_rn(first, second);
  } else {
    if (column < columns) from_float(row[column], first);
    if (column + 1 < columns) from_float(row[column + 1], second);
  }
}

// Starts a kernel whose blocks call multiply_tile<kRows>.
template <int kRows, class... Arguments>
void launch(void (*kernel)(Arguments...), int64_t blocks, Arguments... arguments) {
  constexpr int kBytes = Tile<kRows>::shared_bytes;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  kernel<<<blocks_for(blocks), kThreads, kBytes, c10::cuda::getCurrentCUDAStream()>>>(arguments...);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace bf16_product
}  // namespace
