"""Products of groups of rows on tensor cores, whose blocks find their expert, so that the host needs no row counts.

What bounds it: in prefill the tensor cores, 0.28 TFLOP at full size, and in decoding the memory, from which the matrix
of each expert with rows comes once.

How it works: the ends of the groups are on the GPU, and the host does not wait for them. It starts as many blocks as
the groups could need. A block adds up the tiles of 32 experts at a time, a lane each, until it has come to its own;
those that are too many return. A tile has 128 columns and 128 rows or, where experts have 32 on average or fewer, 32.
mma.sync multiplies what asynchronous copies bring, 32 steps of K at a time, three of which are under way. Blocks with
the same columns and neighbouring rows come one after the other, so that they read matrices from L2.

Rows that don't fill vectors of 16 bytes are copied one value at a time. Hopper's wgmma, which this does not use, could
multiply about twice as fast. Forward only: no gradient is recorded. Not yet measured.
"""

import math
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor grouped_gemm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends);"

CUDA_SOURCE = r"""
#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_pipeline.h>

#include "tensor_cores.cuh"
#include "vectors.cuh"

namespace {

using Half = Bfloat16;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kColumns = 128;  // of a tile
constexpr int kManyRows = 128;
constexpr int kFewRows = 32;
constexpr int kChunk = 32;  // steps of K
constexpr int kStages = 4;
constexpr int kCopy = kFull<Half>;
constexpr int kStride = kChunk + kCopy;  // of a row in shared memory: eight rows begin in different banks
constexpr int kFragment = 16;            // rows, columns and steps of K that one ldmatrix loads

struct Problem {
  const Half* x;
  const Half* weight;
  const int* ends;
  Half* out;
  int experts;
  int hidden;
  int width;
  bool vectors;  // rows are whole vectors
};

struct Place {
  int expert;
  int row;  // the first of the tile
  int end;  // of the expert's rows
};

// Where the tile of this number is, if it is any expert's. Each warp finds it for itself.
__device__ __forceinline__ bool find_place(Place& place, const Problem& problem, int tile, int rows) {
  const int lane = threadIdx.x % kWarpSize;
  for (int first = 0; first < problem.experts; first += kWarpSize) {
    const int expert = first + lane;
    const int begin = 0 < expert && expert < problem.experts ? problem.ends[expert - 1] : 0;
    const int end = expert < problem.experts ? problem.ends[expert] : begin;
    const int own = (end - begin + rows - 1) / rows;
    int before = own;  // of the experts up to this one, then before it
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
      const int other = __shfl_up_sync(kAllLanes, before, distance);
      before += lane >= distance ? other : 0;
    }
    const int all = __shfl_sync(kAllLanes, before, kWarpSize - 1);
    before -= own;
    const unsigned int found = __ballot_sync(kAllLanes, before <= tile && tile < before + own);
    if (found != 0) {
      const int owner = __ffs(found) - 1;
      place.expert = first + owner;
      place.row = __shfl_sync(kAllLanes, begin + (tile - before) * rows, owner);
      place.end = __shfl_sync(kAllLanes, end, owner);
      return true;
    }
    tile -= all;
  }
  return false;
}

// Starts the copies of kChunk steps of K, from step k on, of `Rows` rows. Beyond the last row it is copied again.
template <int Rows>
__device__ __forceinline__ void copy_rows(
    Half* to, const Half* from, int first, int end, int k, const Problem& problem) {
#pragma unroll
  for (int i = threadIdx.x; i < Rows * (kChunk / kCopy); i += kThreads) {
    const int row = i / (kChunk / kCopy);
    const int column = i % (kChunk / kCopy) * kCopy;
    Half* const place = to + row * kStride + column;
    const Half* const source = from + static_cast<int64_t>(min(first + row, end - 1)) * problem.width + k + column;
    if (problem.vectors && k + column < problem.width) {
      __pipeline_memcpy_async(place, source, sizeof(uint4));
    } else {
      for (int j = 0; j < kCopy; ++j) {
        place[j] = k + column + j < problem.width ? source[j] : __float2bfloat16_rn(0.0f);
      }
    }
  }
}

__device__ __forceinline__ void write_two(
    const Problem& problem, int64_t row, int column, float first, float second) {
  Half* const to = problem.out + row * problem.hidden + column;
  if (problem.hidden % 2 == 0 && column < problem.hidden) {
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(first, second);
  } else {
    if (column < problem.hidden) from_float(to[0], first);
    if (column + 1 < problem.hidden) from_float(to[1], second);
  }
}

// Warps have `down` parts of the rows of a tile, and of its columns what that leaves.
template <int kRows>
struct Tile {
  static constexpr int down = kRows == kManyRows ? 2 : 1;
  static constexpr int rows = kRows / down;  // of a warp
  static constexpr int columns = kColumns / (kWarps / down);
  static constexpr int stage = (kRows + kColumns) * kStride;
  static constexpr int shared_bytes = kStages * stage * static_cast<int>(sizeof(Half));
};

// The grid is tiles of rows, for all experts, and tiles of columns.
template <int kRows>
__global__ void __launch_bounds__(kThreads, 2) grouped_gemm_kernel(Problem problem) {
  using T = Tile<kRows>;
  extern __shared__ uint4 shared[];
  Half* const stages = reinterpret_cast<Half*>(shared);
  Place place{};
  if (!find_place(place, problem, static_cast<int>(blockIdx.x), kRows)) {
    return;
  }
  const int first_column = static_cast<int>(blockIdx.y) * kColumns;
  const Half* const weight = problem.weight + static_cast<int64_t>(place.expert) * problem.hidden * problem.width;
  const int chunks = (problem.width + kChunk - 1) / kChunk;
  const auto copy_chunk = [&](int chunk) {
    if (chunk < chunks) {
      Half* const to = stages + chunk % kStages * T::stage;
      copy_rows<kRows>(to, problem.x, place.row, place.end, chunk * kChunk, problem);
      copy_rows<kColumns>(to + kRows * kStride, weight, first_column, problem.hidden, chunk * kChunk, problem);
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
    const Half* const left = stages + chunk % kStages * T::stage + row * kStride;
    const Half* const right = stages + chunk % kStages * T::stage + (kRows + column) * kStride;
#pragma unroll
    for (int step = 0; step < kChunk; step += kFragment) {
      uint32_t lefts[T::rows / kFragment][4];
#pragma unroll
      for (int i = 0; i < T::rows / kFragment; ++i) {
        load_left(lefts[i], left + i * kFragment * kStride + step, kStride);
      }
#pragma unroll
      for (int j = 0; j < T::columns / kFragment; ++j) {
        uint32_t rights[4];
        load_right(rights, right + j * kFragment * kStride + step, kStride);
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
    const int own = place.row + row + i * 8 + lane / 4;
    if (own < place.end) {
#pragma unroll
      for (int j = 0; j < T::columns / 8; ++j) {
        const float* const two = sums[i / 2][j] + i % 2 * 2;
        write_two(problem, own, first_column + column + j * 8 + lane % 4 * 2, two[0], two[1]);
      }
    }
  }
}

// A group may end within a tile, so that there are up to as many more tiles as groups.
template <int kRows>
void launch(const Problem& problem, int64_t tokens) {
  using T = Tile<kRows>;
  const auto kernel = grouped_gemm_kernel<kRows>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::shared_bytes));
  const dim3 grid(
      blocks_for(tokens / kRows + std::min<int64_t>(problem.experts, tokens)),
      static_cast<unsigned int>(divide_up(problem.hidden, kColumns)));
  kernel<<<grid, kThreads, T::shared_bytes, c10::cuda::getCurrentCUDAStream()>>>(problem);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor grouped_gemm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  check_tensor(x, "grouped_gemm: x", at::kBFloat16, x.device());
  check_tensor(weight, "grouped_gemm: weight", at::kBFloat16, x.device());
  check_tensor(ends, "grouped_gemm: ends", at::kInt, x.device());
  TORCH_CHECK(
      x.dim() == 2 && weight.dim() == 3 && ends.dim() == 1 && weight.size(2) == x.size(1) &&
          weight.size(0) == ends.size(0),
      "grouped_gemm: x must be (tokens, width), weight (experts, hidden, width) and ends (experts), but their shapes "
      "are ", x.sizes(), ", ", weight.sizes(), " and ", ends.sizes());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;  // places are 32-bit numbers
  TORCH_CHECK(
      x.size(0) <= kMost && x.size(1) <= kMost && weight.size(0) <= kMost &&
          divide_up(weight.size(1), kColumns) <= kMaxGridY,
      "grouped_gemm: products of ", x.sizes(), " and ", weight.sizes(), " are too large");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0), weight.size(1)}, x.options());
  if (out.numel() == 0 || weight.size(0) == 0) {
    return out;  // a grid without blocks is a launch error
  }
  Problem problem{};
  problem.x = data<Half>(x);
  problem.weight = data<Half>(weight);
  problem.ends = data<int>(ends);
  problem.out = mutable_data<Half>(out);
  problem.experts = static_cast<int>(weight.size(0));
  problem.hidden = static_cast<int>(weight.size(1));
  problem.width = static_cast<int>(x.size(1));
  problem.vectors = problem.width % kCopy == 0 && is_aligned(x) && is_aligned(weight);
  if (x.size(0) <= kFewRows * weight.size(0)) {
    launch<kFewRows>(problem, x.size(0));
  } else {
    launch<kManyRows>(problem, x.size(0));
  }
  return out;
}
"""

extension = load_inline(
    name="grouped_gemm_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["grouped_gemm"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    """Multiplies rows, sorted by expert, with the matrices of their experts, in one kernel."""

    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden, width, dtype=torch.bfloat16) / math.sqrt(width))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return extension.grouped_gemm(x, self.weight, ends)
