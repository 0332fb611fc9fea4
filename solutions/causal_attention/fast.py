"""Causal attention that never writes its scores: tiles of keys stream by under a running softmax (flash attention).

What bounds it: of an H100, tensor cores and exponentials alike. For 128 keys and 64 queries both products take 512
cycles of a multiprocessor, and so do 8192 powers of two, of which it makes 16 a cycle. That is 68,000 cycles in all,
0.04 ms, if they overlap; what goes to and from memory takes half of that.

How it works on Hopper (attention_hopper.cuh): wgmma leaves the scores of 64 queries in registers, and takes the
weights, which are scores rounded, from the same registers. Three groups of four warps have 64 queries each. A group
starts the products of its next scores and those of its last weights with values together, and weighs the new scores
while the latter still run. The groups take turns, so that one weighs while tensor cores work for another. A fourth
group loads: bulk copies put keys, values and queries into shared memory, where three groups read the same tile.

Every other GPU, and the CPU that stands in for one, takes a portable kernel: mma.sync, 16 queries a warp. Its registers
hold scores in the same places, so the softmax (attention.cuh) is the same.

- When a row's maximum grows, what was summed so far has to shrink. That is put off until it grows by more than 2^8:
  weights up to 256 do no harm, and are divided out at the end. Tiles come from the diagonal to the first, and after the
  first tile it hardly ever happens. So threads only vote on it, and the four that share a row need not agree on its
  maximum.
- Queries with the most keys come first, and blocks take theirs to and fro, which leaves the block with the most tiles
  3% above the mean. Tiles above the diagonal are left out, and only those on it are masked.
- Exponentials are powers of two, with log2(e) in the scale, and denormal numbers count as zero (-ftz=true), which saves
  three instructions each.
- Weights are rounded to bfloat16, as cuDNN does it, and sums are float32. An earlier version also multiplied what
  rounding took; the error against float64 is that of cuDNN without it.

How far it gets: 0.091 to 0.097 ms on an H100 in two runs, where cuDNN takes 0.101. Of an earlier form the profiler
counted 172,000 cycles, with tensor cores busy for 39% of them and exponentials for 46%; the busiest multiprocessor had
9% more products than the mean, as parts were dealt out less evenly. With two groups, so that a tile is read more often,
it was 178,000. With wmma, and scores and weights in shared memory, it took 0.300 ms.

Rows beyond the sequence are zeros, which the mask hides. A width other than 64 is an error, as are tensors that don't
begin at a multiple of 16 bytes. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);"

CUDA_SOURCE = r"""
#include <algorithm>
#include <cmath>

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_pipeline_primitives.h>

#include "attention.cuh"
#include "attention_hopper.cuh"
#include "tensor_cores.cuh"

namespace {

using attention::Half;
using attention::kWidth;

namespace portable {

constexpr int kThreads = 128;
constexpr int kWarpRows = 16;  // queries of a warp
constexpr int kQueries = kThreads / kWarpSize * kWarpRows;
constexpr int kKeys = 64;  // of a tile
constexpr int kCopy = sizeof(uint4) / sizeof(Half);
constexpr int kStride = kWidth + kCopy;  // of a row in shared memory: eight rows begin in different banks

struct Tile {
  alignas(16) Half keys[kKeys * kStride];
  alignas(16) Half values[kKeys * kStride];
};

// Begins to copy kKeys rows of one head from row `first` on; zeros where the sequence has ended.
__device__ __forceinline__ void copy_rows(Half* to, const Half* head, int first, int length) {
#pragma unroll
  for (int i = threadIdx.x * kCopy; i < kKeys * kWidth; i += kThreads * kCopy) {
    Half* const place = to + i / kWidth * kStride + i % kWidth;
    if (first + i / kWidth < length) {
      __pipeline_memcpy_async(place, head + static_cast<int64_t>(first) * kWidth + i, sizeof(uint4));
    } else {
      *reinterpret_cast<uint4*>(place) = make_uint4(0, 0, 0, 0);
    }
  }
}

// The left operand for 16 steps of K: two neighbors of each of the thread's rows, then those eight columns further on.
__device__ __forceinline__ void load_queries(uint32_t (&to)[4], const Half* head, int row, int column, int length) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query = row + lane / 4 + i % 2 * 8;
    const Half* const from = head + query * kWidth + column + lane % 4 * 2 + i / 2 * 8;
    to[i] = query < length ? *reinterpret_cast<const uint32_t*>(from) : 0;
  }
}

// sums += left * right for 16 steps of K and all columns: keys, which have K along their rows, or values, which have it
// down their rows.
template <bool Turned, int Count>
__device__ __forceinline__ void multiply_row(float (&sums)[Count], const uint32_t (&left)[4], const Half* right) {
  const int lane = threadIdx.x % kWarpSize;
  const int row = Turned ? lane % 16 : lane / 16 * 8 + lane % 8;
  const Half* const from = right + row * kStride + (Turned ? lane / 16 : lane / 8 % 2) * 8;
#pragma unroll
  for (int n = 0; n < Count / 8; ++n) {  // 16 columns
    uint32_t matrices[4];
    load_matrices<Turned>(matrices, from + n * 16 * (Turned ? 1 : kStride));
    multiply_fragment<Half>(sums + 8 * n, left, matrices);
    multiply_fragment<Half>(sums + 8 * n + 4, left, matrices + 2);
  }
}

// A block has kQueries queries of one head; the last queries, which see the most keys, come first.
__global__ void __launch_bounds__(kThreads) causal_attention_kernel(
    const Half* __restrict__ query,
    const Half* __restrict__ key,
    const Half* __restrict__ value,
    Half* __restrict__ out,
    int heads,
    int length,
    float scale) {
  __shared__ Tile tiles[2];  // one in use, one on its way
  const int part = gridDim.x / heads - 1 - blockIdx.x / heads;
  const int64_t head = static_cast<int64_t>(blockIdx.x % heads) * length * kWidth;
  const int row = part * kQueries + threadIdx.x / kWarpSize * kWarpRows;  // first of the warp
  const int count = (min((part + 1) * kQueries, length) + kKeys - 1) / kKeys;

  uint32_t queries[kWidth / 16][4];
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    load_queries(queries[k], query + head, row, k * 16, length);
  }
  float sums[kWidth / 2] = {};
  attention::Softmax softmax;
  copy_rows(tiles[0].keys, key + head, 0, length);
  copy_rows(tiles[0].values, value + head, 0, length);
  __pipeline_commit();
  for (int i = 0; i < count; ++i) {
    const Tile& tile = tiles[i % 2];
    __pipeline_wait_prior(0);
    __syncthreads();  // the tile is there for all, and all have left the other one
    if (i + 1 < count) {
      Tile& next = tiles[(i + 1) % 2];
      copy_rows(next.keys, key + head, (i + 1) * kKeys, length);
      copy_rows(next.values, value + head, (i + 1) * kKeys, length);
      __pipeline_commit();
    }
    float scores[kKeys / 2] = {};
#pragma unroll
    for (int k = 0; k < kWidth / 16; ++k) {
      multiply_row<false>(scores, queries[k], tile.keys + k * 16);
    }
    if (i + 1 == count) {
      attention::hide_future(scores, row - i * kKeys);
    }
    softmax.weigh(scores, scale, sums, [] {});
    uint32_t weights[kKeys / 16][4];
    attention::round_weights(weights, scores);
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      multiply_row<true>(sums, weights[k], tile.values + k * 16 * kStride);
    }
  }
  softmax.write(sums, out + head, row, length);
}

void run(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& out, float scale) {
  const int64_t blocks = query.size(0) * query.size(1) * divide_up(query.size(2), kQueries);
  TORCH_CHECK(blocks <= kMaxBlocks, "causal_attention: an input of shape ", query.sizes(), " is too large");
  causal_attention_kernel<<<static_cast<unsigned int>(blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<const Half*>(query.const_data_ptr()), static_cast<const Half*>(key.const_data_ptr()),
      static_cast<const Half*>(value.const_data_ptr()), static_cast<Half*>(out.mutable_data_ptr()),
      static_cast<int>(query.size(0) * query.size(1)), static_cast<int>(query.size(2)), scale);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace portable

void check(const at::Tensor& tensor, const char* name, const at::Tensor& query) {
  check_shape(tensor, name, at::kBFloat16, query.sizes(), query.device());
  TORCH_CHECK(is_aligned(tensor), name, " must begin at a multiple of 16 bytes");
}

}  // namespace

at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  TORCH_CHECK(
      query.dim() == 4 && query.size(3) == kWidth,
      "causal_attention: query must be (batch, heads, length, ", kWidth, "), but its shape is ", query.sizes());
  check(query, "causal_attention: query", query);
  check(key, "causal_attention: key", query);
  check(value, "causal_attention: value", query);
  // Places in a sequence are 32-bit numbers, with a margin of a tile beyond its end.
  TORCH_CHECK(
      query.size(2) <= std::numeric_limits<int32_t>::max() / 2,
      "causal_attention: sequences of ", query.size(2), " are too long");

  const c10::cuda::CUDAGuard guard(query.device());
  at::Tensor out = at::empty_like(query);
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const float scale = static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(kWidth)));
#ifdef __CUDA_ARCH_LIST__
  if (hopper::is_hopper(query.get_device())) {
    attention::hopper_form::run(query, key, value, out, scale);
    return out;
  }
#endif
  portable::run(query, key, value, out, scale);
  return out;
}
"""

extension = load_inline(
    name="causal_attention_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["causal_attention"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-ftz=true",  # exp2f is then one instruction
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
    ],
)


class ModelNew(nn.Module):
    """Attention in which a query sees the keys up to its own place, in one kernel."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return extension.causal_attention(query, key, value)
