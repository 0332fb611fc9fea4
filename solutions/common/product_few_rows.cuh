// The product of a few rows with a bfloat16 matrix that has K along its rows, as in decoding, by mma.sync: for every GPU
// from compute capability 8.0.
//
// What bounds it is the memory: the matrix comes once, and no value of it is used by two threads. So each thread loads
// its operands straight into the registers that the tensor cores read, 16 bytes at a time. The steps of K that mma.sync
// takes from a thread are not neighbours, but sums can be in any order: both operands are permuted in the same way.
// The few rows are loaded by every block, so L1 keeps them: without that it takes 4 to 33 % longer on an H200.
//
// The warps of a block have the same columns and take turns along K. Their sums are added up in shared memory, for 16
// rows after the other.
#pragma once

#include "product_bf16.cuh"

namespace {
namespace bf16_product {
namespace few_rows_form {

// Eight neighbouring values of a row, as registers of mma.sync, or zeros beyond the end of K. Beyond the last row that
// one is read again.
template <bool kOnce>
__device__ __forceinline__ uint4 read_eight(const Rows& rows, int row, int k, int width) {
  if (k >= width) {
    return {};
  }
  const Half* const from = rows.values + int64_t{min(rows.first + row, rows.end - 1)} * width + k;
  const auto values = kOnce ? load_once<kCopy>(from) : load<kCopy>(from);
  return *reinterpret_cast<const uint4*>(&values);
}

// As multiply_tile of product_bf16.cuh, for rows that are whole vectors of 16 bytes, and tiles of kColumns columns and
// at most kRows rows, a multiple of 16.
template <int kRows, int kColumns, class Epilogue>
__device__ __forceinline__ void multiply_tile(
    const Rows& left, const Rows& right, int width, const Epilogue& epilogue) {
  constexpr int kEights = kColumns / 8;
  constexpr int kDown = kRows / kFragment;
  constexpr int kPadded = kColumns + 8;  // rows of sums begin in different banks
  __shared__ float parts[kWarps][kFragment][kPadded];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int row = lane / 4;

  float sums[kDown][kEights][4] = {};
  for (int chunk = warp * kChunk; chunk < width; chunk += kWarps * kChunk) {
    const int k = chunk + lane % 4 * kCopy;
    uint4 rights[kEights];
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      rights[i] = read_eight<true>(right, 8 * i + row, k, width);
    }
#pragma unroll
    for (int tile = 0; tile < kDown; ++tile) {
      const uint4 upper = read_eight<false>(left, tile * kFragment + row, k, width);
      const uint4 lower = read_eight<false>(left, tile * kFragment + 8 + row, k, width);
#pragma unroll
      for (int i = 0; i < kEights; ++i) {
        const uint32_t first[] = {rights[i].x, rights[i].y};
        const uint32_t second[] = {rights[i].z, rights[i].w};
        multiply_fragment<Half>(sums[tile][i], {upper.x, lower.x, upper.y, lower.y}, first);
        multiply_fragment<Half>(sums[tile][i], {upper.z, lower.z, upper.w, lower.w}, second);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kDown; ++tile) {
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kEights; ++i) {
        const float* const two = sums[tile][i] + half * 2;
        *reinterpret_cast<float2*>(&parts[warp][half * 8 + row][8 * i + lane % 4 * 2]) = make_float2(two[0], two[1]);
      }
    }
    __syncthreads();
    const int first = left.first + tile * kFragment;
    for (int i = threadIdx.x; i < min(left.end - first, kFragment) * (kColumns / 2); i += kThreads) {
      const int own = i / (kColumns / 2);
      const int column = i % (kColumns / 2) * 2;
      float2 sum = {};
#pragma unroll
      for (int part = 0; part < kWarps; ++part) {
        const float2 two = *reinterpret_cast<const float2*>(&parts[part][own][column]);
        sum.x += two.x;
        sum.y += two.y;
      }
      epilogue(first + own, right.first + column, sum.x, sum.y);
    }
  }
}

}  // namespace few_rows_form
}  // namespace bf16_product
}  // namespace
