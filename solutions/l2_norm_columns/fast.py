"""Norms of columns: each block sums the squares of a tile of the matrix, a second kernel adds the tiles up.

What bounds it: memory. Every value is read once for one multiplication and one addition, so the best time is that of
reading the matrix.

The trick is to read along the rows, as the matrix lies in memory, though the sums run along the columns. A warp takes
32 vectors of 16 bytes side by side, 512 bytes of one row, and goes down; each thread keeps the sums of its four columns
in registers, so no value crosses threads until the end. A thread's round is eight rows: eight loads that don't depend
on each other. The eight warps of a block take every eighth row of the same columns, and add up in shared memory.

A tile is 256 rows high, four rounds a thread. That gives 4096 blocks for a matrix of 32768 x 4096, several times what a
large GPU runs at once, so that the last blocks don't leave it half idle; and the partial sums, one for 256 values, are
less than 1 % of the traffic. The second kernel adds them up in a fixed order, so that the same input gives the same
bits, and takes the root.

A matrix with a number of columns that is no multiple of four, or a misaligned one, is read one value at a time.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor l2_norm_columns(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "checks.cuh"

namespace {

constexpr int kLanes = 32;       // vectors of a row that a block takes, one a lane
constexpr int kWarps = 8;        // rows that a block takes at a time
constexpr int kPerThread = 8;    // independent loads a thread
constexpr int kTileRows = 256;   // rows that a block sums up
static_assert(kTileRows % (kWarps * kPerThread) == 0, "a full tile is a whole number of rounds");

__device__ __forceinline__ void add_square(float& sum, float value) {
  sum = fmaf(value, value, sum);
}

__device__ __forceinline__ void add_square(float4& sum, float4 value) {
  add_square(sum.x, value.x);
  add_square(sum.y, value.y);
  add_square(sum.z, value.z);
  add_square(sum.w, value.w);
}

__device__ __forceinline__ void add(float& sum, float value) {
  sum += value;
}

__device__ __forceinline__ void add(float4& sum, float4 value) {
  sum.x += value.x;
  sum.y += value.y;
  sum.z += value.z;
  sum.w += value.w;
}

// Vector is float4, or float where rows don't fill vectors or x is misaligned. A block does a tile of kTileRows rows
// and kLanes vectors; partial has one row for every row of tiles.
template <typename Vector>
__global__ void __launch_bounds__(kLanes * kWarps) sum_squares_kernel(
    const Vector* __restrict__ x,
    Vector* __restrict__ partial,
    int64_t rows,
    int64_t row_vectors,
    unsigned int blocks_per_row) {
  __shared__ Vector sums[kWarps][kLanes];
  const unsigned int tile = blockIdx.x / blocks_per_row;
  const int64_t column = static_cast<int64_t>(blockIdx.x - tile * blocks_per_row) * kLanes + threadIdx.x;
  const int64_t begin = static_cast<int64_t>(tile) * kTileRows;
  const int64_t end = min(begin + kTileRows, rows);

  Vector sum{};
  if (column < row_vectors) {
    int64_t row = begin + threadIdx.y;
    for (; row + (kPerThread - 1) * kWarps < end; row += kPerThread * kWarps) {
      Vector values[kPerThread];
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        values[i] = __ldcs(x + (row + i * kWarps) * row_vectors + column);
      }
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        add_square(sum, values[i]);
      }
    }
    for (; row < end; row += kWarps) {
      add_square(sum, __ldcs(x + row * row_vectors + column));
    }
  }

  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < row_vectors) {
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) {
      add(sum, sums[warp][threadIdx.x]);
    }
    partial[tile * row_vectors + column] = sum;
  }
}

// The root of the sum of each column of partial, which has one row a tile. A block does kLanes columns.
__global__ void __launch_bounds__(kLanes * kWarps) finish_kernel(
    const float* __restrict__ partial, float* __restrict__ out, int64_t tiles, int64_t columns) {
  __shared__ float sums[kWarps][kLanes];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kLanes + threadIdx.x;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (int64_t tile = threadIdx.y; tile < tiles; tile += kWarps) {
      sum += partial[tile * columns + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) {
      sum += sums[warp][threadIdx.x];
    }
    out[column] = sqrtf(sum);
  }
}

template <typename Vector>
void launch_sum_squares(const float* x, float* partial, int64_t rows, int64_t columns, int64_t tiles) {
  const int64_t row_vectors = columns * sizeof(float) / sizeof(Vector);
  const int64_t blocks_per_row = (row_vectors + kLanes - 1) / kLanes;
  TORCH_CHECK(
      blocks_per_row <= kMaxBlocks / tiles,
      "l2_norm_columns: a matrix of ", rows, " x ", columns, " is too large for one launch");
  const unsigned int blocks = static_cast<unsigned int>(tiles * blocks_per_row);
  sum_squares_kernel<Vector><<<blocks, dim3(kLanes, kWarps), 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const Vector*>(x),
      reinterpret_cast<Vector*>(partial),
      rows,
      row_vectors,
      static_cast<unsigned int>(blocks_per_row));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor l2_norm_columns(const at::Tensor& x) {
  check_float(x, "l2_norm_columns: x", 2, x.device());

  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  at::Tensor out = at::empty({columns}, x.options());
  if (columns == 0) {
    return out;  // a grid without blocks is a launch error
  }
  at::Tensor partial = at::empty({tiles, columns}, x.options());
  const float* from = x.const_data_ptr<float>();
  float* sums = partial.mutable_data_ptr<float>();
  if (tiles > 0) {  // without rows, every norm is 0
    if (columns % 4 == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(float4) == 0) {
      launch_sum_squares<float4>(from, sums, rows, columns, tiles);
    } else {
      launch_sum_squares<float>(from, sums, rows, columns, tiles);
    }
  }

  const int64_t blocks = (columns + kLanes - 1) / kLanes;
  TORCH_CHECK(blocks <= kMaxBlocks, "l2_norm_columns: ", columns, " columns are too many for one launch");
  const dim3 threads(kLanes, kWarps);
  finish_kernel<<<static_cast<unsigned int>(blocks), threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      sums, out.mutable_data_ptr<float>(), tiles, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="l2_norm_columns_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["l2_norm_columns"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Takes the norm along the first dimension."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.l2_norm_columns(x)
