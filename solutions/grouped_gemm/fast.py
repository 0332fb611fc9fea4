"""Products of groups of rows on tensor cores, whose blocks find their expert, so that the host needs no row counts.

What bounds it: in prefill the tensor cores, 0.28 TFLOP at full size, and in decoding the memory, from which the matrix
of each expert with rows comes once.

How it works: the ends of the groups are on the GPU, and the host does not wait for them. A block adds up the tiles of
32 experts at a time, a lane of a warp each, and so finds the place of each of its tiles. Tiles go down an expert's rows
before the next columns, so that they read its matrix from L2.

On Hopper as many blocks as multiprocessors multiply by wgmma (common/product_bf16_hopper.cuh). A tile has 128 rows and
256 columns, and the two blocks of a cluster have the same rows. If they were one above the other, half of an expert's
last tile would often be for nothing. A tile may read rows of the next expert, but doesn't write them.

Every other GPU, and rows that are not multiples of 16 bytes, take mma.sync (common/product_bf16.cuh), with as many
blocks as there could be tiles, of 128 columns and 128 rows or, where experts have few, 32. So does the CPU that stands
in for a GPU. Forward only: no gradient is recorded.

Measured on an H100: 0.37 ms at full size, where PyTorch's grouped_mm takes 0.41 and mma.sync 1.11. Clusters one above
the other take 0.39 ms, single blocks 0.40, and tiles of 128 columns 0.54. In decoding, tiles of 128 columns are up to
12 % slower, except for one token.
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

#include "product_bf16_hopper.cuh"

namespace {

using namespace bf16_product;

// Rows of experts, whose ends are on the GPU.
struct Tiles {
  const int* ends;
  int experts;
  int tokens;
  int hidden;

  // An expert's rows may end within a tile, so that there are up to as many more tiles as experts.
  int64_t at_most(int rows, int columns) const {
    return (tokens / rows + std::min(experts, tokens)) * divide_up(hidden, columns);
  }

  // A warp adds up the tiles of 32 experts at a time, a lane each.
  template <int kRows, int kTileColumns, class Function>
  __device__ __forceinline__ void for_each(int tile, int every, const Function& function) const {
    const int lane = threadIdx.x % kWarpSize;
    const int across = (hidden + kTileColumns - 1) / kTileColumns;
    for (int first = 0; first < experts; first += kWarpSize) {
      const int expert = first + lane;
      const int begin = 0 < expert && expert < experts ? ends[expert - 1] : 0;
      const int end = expert < experts ? ends[expert] : begin;
      const int own = (end - begin + kRows - 1) / kRows * across;
      int before = own;  // of the experts up to this one, then before it
#pragma unroll
      for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const int other = __shfl_up_sync(kAllLanes, before, distance);
        before += lane >= distance ? other : 0;
      }
      const int all = __shfl_sync(kAllLanes, before, kWarpSize - 1);
      before -= own;
      for (; tile < all; tile += every) {
        const int owner = __ffs(__ballot_sync(kAllLanes, before <= tile && tile < before + own)) - 1;
        const Place rows{
            first + owner, __shfl_sync(kAllLanes, begin, owner), __shfl_sync(kAllLanes, end, owner), 0};
        function(place_of<kRows, kTileColumns>(tile - __shfl_sync(kAllLanes, before, owner), rows, hidden));
      }
      tile -= all;
    }
  }
};

#ifdef __CUDA_ARCH_LIST__

using Shape = hopper_form::Shape<256, 4, 1, 2>;

struct Round {
  __device__ __forceinline__ auto prepare(int) const {
    return [](float first, float second, int) { return __floats2bfloat162_rn(first, second); };
  }
};

#endif  // __CUDA_ARCH_LIST__

// As many blocks as there may be tiles: none has two.
template <int kRows>
__global__ void __launch_bounds__(kThreads, 2) grouped_gemm_kernel(
    const Half* __restrict__ x, const Half* __restrict__ weight, Half* __restrict__ out, Depth depth, Tiles tiles) {
  tiles.for_each<kRows, kColumns>(blockIdx.x, gridDim.x, [&](const Place& place) {
    const Half* const matrix = weight + int64_t{place.batch} * tiles.hidden * depth.width;
    multiply_tile<kRows>(
        {x, place.row, place.end}, {matrix, place.column, tiles.hidden}, depth,
        [&](int row, int column, float first, float second) {
          write_two(out + int64_t{row} * tiles.hidden, column, tiles.hidden, first, second);
        });
  });
}

template <int kRows>
void run(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& out, const Tiles& tiles) {
  launch<kRows>(
      grouped_gemm_kernel<kRows>, tiles.at_most(kRows, kColumns), data<Half>(x), data<Half>(weight),
      mutable_data<Half>(out), Depth(x, weight), tiles);
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
  const Tiles tiles{
      data<int>(ends), static_cast<int>(weight.size(0)), static_cast<int>(x.size(0)),
      static_cast<int>(weight.size(1))};
#ifdef __CUDA_ARCH_LIST__
  if (hopper_form::can_run(x, weight, out)) {
    hopper_form::multiply<Shape>(x, weight, out, tiles, Round{});
    return out;
  }
#endif
  const bool few = x.size(0) <= kFewRows * weight.size(0);
  (few ? run<kFewRows> : run<kManyRows>)(x, weight, out, tiles);
  return out;
}
"""

extension = load_inline(
    name="grouped_gemm_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["grouped_gemm"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
    ],
)


class ModelNew(nn.Module):
    """Multiplies rows, sorted by expert, with the matrices of their experts, in one kernel."""

    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden, width, dtype=torch.bfloat16) / math.sqrt(width))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return extension.grouped_gemm(x, self.weight, ends)
