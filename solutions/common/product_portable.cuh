// Products of split operands with mma.sync, for every GPU from compute capability 8.0.
//
// A block of warps has a tile of the output, a warp 64 x 64 of it: 128 registers for its sums, 32 for the sums of a
// chunk of 32 steps of K, and 64 for the right operand's parts of that chunk, which stay while those of the left one
// pass by. That is all there are, but it makes 6 products of one load from shared memory.
//
// Tensor cores cut sums off instead of rounding them, which adds up over a long K. So they sum no more than a chunk,
// six products, small ones first; everything else is added, and rounded, outside.
//
// Shared memory holds three chunks: one that is multiplied, the next, and one that asynchronous copies fill. Two blocks
// of wide tiles share a multiprocessor that has 228 KB, so that one multiplies while the other waits at its barrier.
#pragma once

#include <cuda_pipeline.h>

#include "tensor_cores.cuh"
#include "tiles.cuh"

namespace {
namespace split {
namespace portable {

constexpr int kWarpTile = 64;
constexpr int kTileM = 128;
constexpr int kWideTile = 128;
constexpr int kNarrowTile = 64;  // for narrow matrices, and for GPUs with less shared memory
constexpr int kFragment = 16;    // rows and steps of K of one instruction
constexpr int kFragments = kWarpTile / kFragment;
constexpr int kSums = 4 * (kWarpTile / 8);  // of 16 rows
constexpr int kStages = 3;

// A row of a chunk is 128 bytes. 16 more lie between rows, so that the eight rows that a part of ldmatrix reads begin
// in eight different groups of four banks.
constexpr int kCopyHalves = 8;
constexpr int kStride = kChunkHalves + kCopyHalves;

template <int TileN>
struct Tile {
  static constexpr int warps_across = TileN / kWarpTile;
  static constexpr int threads = kTileM / kWarpTile * warps_across * kWarpSize;
  static constexpr int blocks_per_sm = TileN == kWideTile ? 2 : 1;  // at least, for the compiler
  static constexpr int stage_halves = (kTileM + TileN) * kStride;
  static constexpr int shared_bytes = kStages * stage_halves * static_cast<int>(sizeof(__half));
};

// Starts the copies of a chunk of Rows lines. Beyond the last line that one is copied again; nobody looks at it.
template <int Rows, int Threads>
__device__ __forceinline__ void copy_lines(
    __half* to, const __half* parts, int first, int64_t lines, int64_t line_halves) {
  constexpr int kCopiesALine = kChunkHalves / kCopyHalves;
  const int line = static_cast<int>(threadIdx.x) / kCopiesALine;
  const int place = static_cast<int>(threadIdx.x) % kCopiesALine * kCopyHalves;
#pragma unroll 1
  for (int i = line; i < line + Rows; i += Threads / kCopiesALine) {
    const __half* const from = parts + min(static_cast<int64_t>(first + i), lines - 1) * line_halves + place;
    __pipeline_memcpy_async(to + i * kStride + place, from, kCopyHalves * sizeof(__half));
  }
}

// What a warp has of one chunk of the right operand.
struct RightChunk {
  uint32_t high[2][kFragments][4];
  uint32_t low[2][kFragments][4];

  __device__ __forceinline__ void load(const __half* from) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int j = 0; j < kFragments; ++j) {
        const __half* const fragment = from + j * kFragment * kStride + step * kFragment;
        load_right(high[step][j], fragment, kStride);
        load_right(low[step][j], fragment + kChunk, kStride);
      }
    }
  }
};

// part += left * right for 16 rows and steps of K.
__device__ __forceinline__ void multiply_row(
    float (&part)[kSums], const uint32_t (&left)[4], const uint32_t (&right)[kFragments][4]) {
#pragma unroll
  for (int eight = 0; eight < 2 * kFragments; ++eight) {
    multiply_fragment<__half>(part + 4 * eight, left, right[eight / 2] + eight % 2 * 2);
  }
}

// Adds to sums what one chunk of 16 lines of the left operand gives.
__device__ __forceinline__ void multiply_chunk(float (&sums)[kSums], const __half* left, const RightChunk& right) {
  float part[kSums] = {};
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    uint32_t high[4];
    uint32_t low[4];
    load_left(high, left + step * kFragment, kStride);
    load_left(low, left + step * kFragment + kChunk, kStride);
    multiply_row(part, low, right.high[step]);
    multiply_row(part, high, right.low[step]);
    multiply_row(part, high, right.high[step]);
  }
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    sums[i] += part[i];
  }
}

template <int TileN, class Epilogue>
__global__ void __launch_bounds__(Tile<TileN>::threads, Tile<TileN>::blocks_per_sm) multiply_kernel(
    const __half* __restrict__ left,
    const __half* __restrict__ right,
    int64_t left_lines,
    int64_t right_lines,
    const Tiles tiles,
    const Epilogue epilogue) {
  using T = Tile<TileN>;
  extern __shared__ float4 shared[];
  __half* const stages = reinterpret_cast<__half*>(shared);
  const Place place = tiles.place(static_cast<int>(blockIdx.x));
  const int64_t line_halves = static_cast<int64_t>(tiles.chunks) * kChunkHalves;
  left += (place.batch * left_lines) * line_halves + place.first_chunk * kChunkHalves;
  right += (place.batch * right_lines) * line_halves + place.first_chunk * kChunkHalves;
  const int warp_m = threadIdx.x / kWarpSize / T::warps_across * kWarpTile;
  const int warp_n = threadIdx.x / kWarpSize % T::warps_across * kWarpTile;

  // Every chunk makes one commit, those beyond the end too: the number of those that may be open is always the same.
  const auto copy_chunk = [&](int chunk) {
    if (chunk < place.chunks) {
      __half* const stage = stages + chunk % kStages * T::stage_halves;
      const int64_t halves = static_cast<int64_t>(chunk) * kChunkHalves;
      copy_lines<kTileM, T::threads>(stage, left + halves, place.row, left_lines, line_halves);
      copy_lines<TileN, T::threads>(
          stage + kTileM * kStride, right + halves, place.column, right_lines, line_halves);
    }
    __pipeline_commit();
  };
  const auto right_rows = [&](int chunk) {
    return stages + chunk % kStages * T::stage_halves + (kTileM + warp_n) * kStride;
  };

  float sums[kFragments][kSums] = {};
  for (int chunk = 0; chunk < kStages - 1; ++chunk) {
    copy_chunk(chunk);
  }
  __pipeline_wait_prior(kStages - 2);
  __syncthreads();
  RightChunk held;
  if (place.chunks > 0) {
    held.load(right_rows(0));
  }
  for (int chunk = 0; chunk < place.chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 3);
    __syncthreads();  // the next chunk is there for all, and all are done with the stage that is filled now
    const __half* const left_rows = stages + chunk % kStages * T::stage_halves + warp_m * kStride;
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      multiply_chunk(sums[i], left_rows + i * kFragment * kStride, held);
      if (i == 0) {
        copy_chunk(chunk + kStages - 1);
      }
    }
    if (chunk + 1 < place.chunks) {
      held.load(right_rows(chunk + 1));  // before the barrier, so that products start right after it
    }
  }
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
    epilogue(sums[i], place.batch, place.row + warp_m + i * kFragment, place.column + warp_n);
  }
}

template <int TileN, class Epilogue>
void multiply(const Operand& left, const Operand& right, const Epilogue& epilogue, bool lower) {
  using T = Tile<TileN>;
  const Tiles tiles(left, right, kTileM, TileN, lower);
  const auto kernel = multiply_kernel<TileN, Epilogue>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::shared_bytes));
  kernel<<<static_cast<unsigned int>(tiles.count), T::threads, T::shared_bytes, c10::cuda::getCurrentCUDAStream()>>>(
      left.halves(), right.halves(), left.lines, right.lines, tiles, epilogue);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// The wide tile where it has columns to work on and the GPU has the shared memory for it.
template <class Epilogue>
void run(const Operand& left, const Operand& right, const Epilogue& epilogue, bool lower) {
  int shared_bytes = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(
      &shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, left.parts.get_device()));
  if (right.lines > kNarrowTile && shared_bytes >= Tile<kWideTile>::shared_bytes) {
    multiply<kWideTile>(left, right, epilogue, lower);
  } else {
    multiply<kNarrowTile>(left, right, epilogue, lower);
  }
}

}  // namespace portable
}  // namespace split
}  // namespace
