"""Products of groups of rows on tensor cores, whose blocks find their expert, so that the host needs no row counts.

What bounds it: in prefill the tensor cores, 0.28 TFLOP at full size, and in decoding the memory, from which the matrix
of each expert with rows comes once.

How it works: the ends of the groups are on the GPU, and the host does not wait for them. It starts as many blocks as
the groups could need. A block adds up the tiles of 32 experts at a time, a lane each, until it has come to its own;
those that are too many return. A tile has 128 columns and 128 rows or, where experts have 32 on average or fewer, 32.
mma.sync multiplies it (common/product_bf16.cuh). Blocks with the same columns and neighbouring rows come one after the
other, so that they read matrices from L2.

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

#include "product_bf16.cuh"

namespace {

using namespace bf16_product;

struct Problem {
  const Half* x;
  const Half* weight;
  const int* ends;
  Half* out;
  int experts;
  int hidden;
  Depth depth;
  int row_tiles;  // of all experts, at most
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

template <int kRows>
__global__ void __launch_bounds__(kThreads, 2) grouped_gemm_kernel(Problem problem) {
  Place place{};
  if (!find_place(place, problem, static_cast<int>(blockIdx.x) % problem.row_tiles, kRows)) {
    return;
  }
  const int first_column = static_cast<int>(blockIdx.x) / problem.row_tiles * kColumns;
  const Half* const weight = problem.weight + int64_t{place.expert} * problem.hidden * problem.depth.width;
  multiply_tile<kRows>(
      {problem.x, place.row, place.end}, {weight, first_column, problem.hidden}, problem.depth,
      [&](int row, int column, float first, float second) {
        write_two(problem.out + int64_t{row} * problem.hidden, column, problem.hidden, first, second);
      });
}

// A group may end within a tile, so that there are up to as many more tiles as groups.
template <int kRows>
void run(Problem& problem, int64_t tokens) {
  problem.row_tiles = static_cast<int>(tokens / kRows + std::min<int64_t>(problem.experts, tokens));
  launch<kRows>(grouped_gemm_kernel<kRows>, problem.row_tiles * divide_up(problem.hidden, kColumns), problem);
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
      std::max({x.size(0) + weight.size(0), x.size(1), weight.size(1)}) <= kMost,
      "grouped_gemm: products of ", x.sizes(), " and ", weight.sizes(), " are too large");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0), weight.size(1)}, x.options());
  if (out.numel() == 0 || weight.size(0) == 0) {
    return out;  // a grid without blocks is a launch error
  }
  Problem problem{
      data<Half>(x), data<Half>(weight), data<int>(ends), mutable_data<Half>(out), static_cast<int>(weight.size(0)),
      static_cast<int>(weight.size(1)), Depth(x, weight), 0};
  if (x.size(0) <= kFewRows * weight.size(0)) {
    run<kFewRows>(problem, x.size(0));
  } else {
    run<kManyRows>(problem, x.size(0));
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
