"""Attention of one token to keys in pages: parts of sequences side by side on tensor cores, then a kernel that joins.

What bounds it: memory. At full size the keys and values are 268 MB, 0.08 ms at 3.35 TB/s. All query heads of a group
use the same ones, so they are done together. For eight of them, arithmetic on plain cores would take as long.

How it works: a block has up to eight query heads of a group, and a part of a sequence. Parts have 64 to 512 keys, so
that there are enough for all multiprocessors. The lengths are on the GPU and the host does not wait for them, so parts
are planned for the capacity of the page table, and those beyond a sequence's end return at once. A warp takes every
fourth 16 keys of its block's part.

Tensor cores (mma.sync) need no shared memory here. The order of the columns they sum over is free, as long as queries
and keys agree on it: a thread loads 16 neighbouring bytes of a row and has what it needs for two steps of 16. The
columns of the values may be in any order as well. There a thread loads 16 bytes of four rows, and pairs them by
__byte_perm. The softmax is that of causal attention (common/attention.cuh), with half of its rows unused.

One lane for each of 16 keys looks up its page, a round before the keys are loaded, and tells the others. The four warps
of a block join their sums in shared memory. Sequences of one part are then done. For the others the second kernel joins
the parts, whose sums are float32.

A width other than 64 and 128 is an error, as are tensors that don't begin at a multiple of 16 bytes. The table and the
lengths are not checked, as they are on the GPU. A length of 0 gives NaN. Forward only: no gradient is recorded. Not yet
measured.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = (
    "at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& key_pages, const at::Tensor& value_pages, "
    "const at::Tensor& page_table, const at::Tensor& lengths);"
)

CUDA_SOURCE = r"""
#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "attention.cuh"
#include "reduce.cuh"
#include "tensor_cores.cuh"
#include "vectors.cuh"

namespace {

using attention::Half;

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kHeads = 8;   // query heads of a block, all of one group
constexpr int kTile = 16;   // keys that a warp takes at a time
constexpr int kRound = kWarps * kTile;
constexpr int kMostRounds = 8;  // of a part
constexpr int kBlocks = 3;  // of a multiprocessor, for which registers must do
constexpr int kWaves = 4;   // blocks planned for each multiprocessor, of which ragged lengths leave about half
constexpr int kFloats = 4;  // in 16 bytes
constexpr int kHalves = 8;

struct Problem {
  const Half* query;
  const Half* keys;
  const Half* values;
  const int* page_table;
  const int* lengths;
  Half* out;
  float* part_values;  // of each query head and part: sums of values by weights, relative to a maximum,
  float2* part_sums;   // and that maximum, as a power of two, with the sum of the weights
  int query_heads;
  int key_heads;
  int head_blocks;  // of a group
  int page;
  int most_pages;
  int part_keys;
  int parts;
  float scale;
};

__device__ __forceinline__ uint4 load_halves(const Half* from) {
  return *reinterpret_cast<const uint4*>(from);
}

__device__ __forceinline__ uint32_t word(const uint4& words, int i) {
  return reinterpret_cast<const uint32_t*>(&words)[i];
}

// The row of a key among those of all pages. Keys beyond the end have the row of the last one.
__device__ __forceinline__ int find_row(const Problem& problem, int key, int end) {
  key = max(min(key, end - 1), 0);
  const int* const table = problem.page_table + static_cast<int64_t>(blockIdx.z) * problem.most_pages;
  return table[key / problem.page] * problem.page + key % problem.page;
}

// What a warp loads of 16 keys. A thread has key `lane / 4` and the one eight further down, and values 2 * c, 2 * c + 1
// and the two eight further down, with c = lane % 4.
template <int kWidth>
struct Tile {
  uint4 keys[2][kWidth / 32];
  uint4 values[4][kWidth / 64];

  // `row` is the row of key `lane % 16`.
  __device__ __forceinline__ Tile(const Problem& problem, int row) {
    const int lane = threadIdx.x % kWarpSize;
    const int head = static_cast<int>(blockIdx.x) / problem.head_blocks;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t place = __shfl_sync(kAllLanes, row, 8 * i + lane / 4) * int64_t{problem.key_heads} + head;
#pragma unroll
      for (int k = 0; k < kWidth / 32; ++k) {
        keys[i][k] = load_halves(problem.keys + place * kWidth + 32 * k + lane % 4 * kHalves);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = lane % 4 * 2 + i % 2 + i / 2 * 8;
      const int64_t place = __shfl_sync(kAllLanes, row, from) * int64_t{problem.key_heads} + head;
#pragma unroll
      for (int k = 0; k < kWidth / 64; ++k) {
        values[i][k] = load_halves(problem.values + place * kWidth + 64 * k + lane / 4 * kHalves);
      }
    }
  }

  __device__ __forceinline__ void score(float (&scores)[kTile / 2], const uint4 (&queries)[kWidth / 32]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int step = 0; step < kWidth / 16; ++step) {
        const uint4& query = queries[step / 2];
        const uint32_t left[4] = {word(query, step % 2 * 2), 0, word(query, step % 2 * 2 + 1), 0};
        const uint4& key = keys[i][step / 2];
        const uint32_t right[2] = {word(key, step % 2 * 2), word(key, step % 2 * 2 + 1)};
        multiply_fragment<Half>(scores + 4 * i, left, right);
      }
    }
  }

  // sums += weights * values. Column n of the eight of product j of 64 columns is column 8 * n + j.
  __device__ __forceinline__ void add(float (&sums)[kWidth / 2], const uint32_t (&weights)[4]) const {
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i) {
      const int j = i % 8;
      const int halves = j % 2 == 0 ? 0x5410 : 0x7632;
      uint32_t right[2];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        right[pair] =
            __byte_perm(word(values[2 * pair][i / 8], j / 2), word(values[2 * pair + 1][i / 8], j / 2), halves);
      }
      multiply_fragment<Half>(sums + 4 * i, weights, right);
    }
  }
};

template <int kWidth>
__device__ __forceinline__ void attend(
    float (&sums)[kWidth / 2], attention::Softmax& softmax, const Problem& problem,
    const uint4 (&queries)[kWidth / 32], int begin, int end) {
  const int lane = threadIdx.x % kWarpSize;
  int row = find_row(problem, begin + lane % kTile, end);
  for (int key = begin; key < end; key += kRound) {
    const Tile<kWidth> tile(problem, row);
    row = find_row(problem, key + kRound + lane % kTile, end);
    float scores[kTile / 2] = {};
    tile.score(scores, queries);
    if (key + kTile > end) {
#pragma unroll
      for (int i = 0; i < kTile / 2; ++i) {
        if (key + i / 4 * 8 + lane % 4 * 2 + i % 2 >= end) {
          scores[i] = -INFINITY;
        }
      }
    }
    softmax.weigh(scores, problem.scale, sums, [] {});
    uint32_t weights[1][4];
    attention::round_weights(weights, scores);
    tile.add(sums, weights[0]);
  }
}

__device__ __forceinline__ float maximum_of(const float (&maxima)[kWarps][kHeads], int head) {
  float maximum = maxima[0][head];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    maximum = fmaxf(maximum, maxima[i][head]);
  }
  return maximum;
}

// The grid is query heads (those of a group next to each other), parts of a sequence, and sequences.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocks) attend_kernel(Problem problem) {
  __shared__ float maxima[kWarps][kHeads];
  __shared__ float totals[kWarps][kHeads];
  __shared__ float values[kWarps][kHeads][kWidth];
  const int length = problem.lengths[blockIdx.z];
  const int begin = static_cast<int>(blockIdx.y) * problem.part_keys;
  if (begin > 0 && begin >= length) {
    return;
  }
  const int group = problem.query_heads / problem.key_heads;
  const int first = static_cast<int>(blockIdx.x) % problem.head_blocks * kHeads;
  const int heads = min(group - first, kHeads);
  const int64_t first_row = static_cast<int64_t>(blockIdx.z) * problem.query_heads +
                            static_cast<int>(blockIdx.x) / problem.head_blocks * group + first;
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int own = lane / 4;  // head of the thread

  uint4 queries[kWidth / 32];
#pragma unroll
  for (int k = 0; k < kWidth / 32; ++k) {
    queries[k] = make_uint4(0, 0, 0, 0);
    if (own < heads) {
      queries[k] = load_halves(problem.query + (first_row + own) * kWidth + 32 * k + lane % 4 * kHalves);
    }
  }
  float sums[kWidth / 2] = {};
  attention::Softmax softmax;
  attend<kWidth>(sums, softmax, problem, queries, begin + warp * kTile, min(begin + problem.part_keys, length));

  if (lane % 4 == 0) {
    maxima[warp][own] = softmax.maxima[0];
  }
  const float total = across_lanes<4>(softmax.sums[0], Sum());
  __syncthreads();
  const float factor = exp2f(softmax.maxima[0] - maximum_of(maxima, own));
  if (lane % 4 == 0) {
    totals[warp][own] = total * factor;
  }
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) {  // the thread has 16 neighbouring columns of each 64
    values[warp][own][i / 16 * 64 + lane % 4 * 16 + i % 16] = sums[(i / 16 * 8 + i % 8) * 4 + i / 8 % 2] * factor;
  }
  __syncthreads();

  for (int i = threadIdx.x; i < heads * kWidth; i += kThreads) {
    const int head = i / kWidth;
    float joined = 0.0f;
    float joined_total = 0.0f;
#pragma unroll
    for (int j = 0; j < kWarps; ++j) {
      joined += values[j][head][i % kWidth];
      joined_total += totals[j][head];
    }
    const int64_t place = (first_row + head) * problem.parts + blockIdx.y;
    if (length <= problem.part_keys) {
      from_float(problem.out[first_row * kWidth + i], joined / joined_total);
    } else {
      problem.part_values[place * kWidth + i % kWidth] = joined;
      if (i % kWidth == 0) {
        problem.part_sums[place] = make_float2(maximum_of(maxima, head), joined_total);
      }
    }
  }
}

// A block joins the parts of a query head of a sequence, four columns a thread.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) join_kernel(Problem problem) {
  constexpr int kRows = kThreads / (kWidth / kFloats);  // parts at a time
  __shared__ float values[kRows][kWidth];
  __shared__ float totals[kRows];
  const int64_t row = blockIdx.x;
  const int length = problem.lengths[row / problem.query_heads];
  if (length <= problem.part_keys) {
    return;  // it is written
  }
  const int parts = (length - 1) / problem.part_keys + 1;
  const float2* const part_sums = problem.part_sums + row * problem.parts;
  float maximum = -INFINITY;
  for (int part = threadIdx.x % kWarpSize; part < parts; part += kWarpSize) {
    maximum = fmaxf(maximum, part_sums[part].x);
  }
  maximum = across_lanes(maximum, Maximum());

  const int own = threadIdx.x / (kWidth / kFloats);
  const int column = threadIdx.x % (kWidth / kFloats) * kFloats;
  float sums[kFloats] = {};
  float total = 0.0f;
#pragma unroll 4
  for (int part = own; part < parts; part += kRows) {
    const float factor = exp2f(part_sums[part].x - maximum);
    const auto of_part = load<kFloats>(problem.part_values + (row * problem.parts + part) * kWidth + column);
#pragma unroll
    for (int i = 0; i < kFloats; ++i) {
      sums[i] += of_part[i] * factor;
    }
    total += part_sums[part].y * factor;
  }
#pragma unroll
  for (int i = 0; i < kFloats; ++i) {
    values[own][column + i] = sums[i];
  }
  if (column == 0) {
    totals[own] = total;
  }
  __syncthreads();
  if (threadIdx.x < kWidth) {
    float joined = 0.0f;
    float joined_total = 0.0f;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      joined += values[i][threadIdx.x];
      joined_total += totals[i];
    }
    from_float(problem.out[row * kWidth + threadIdx.x], joined / joined_total);
  }
}

template <int kWidth>
void launch(const Problem& problem, int64_t batch) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  const dim3 grid(problem.key_heads * problem.head_blocks, problem.parts, static_cast<unsigned int>(batch));
  attend_kernel<kWidth><<<grid, kThreads, 0, stream>>>(problem);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (problem.parts > 1) {
    join_kernel<kWidth><<<blocks_for(batch * problem.query_heads), kThreads, 0, stream>>>(problem);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
}

void check(const at::Tensor& tensor, const char* name, at::IntArrayRef sizes, const at::Device& device) {
  check_shape(tensor, name, at::kBFloat16, sizes, device);
  TORCH_CHECK(is_aligned(tensor), name, " must begin at a multiple of 16 bytes");
}

}  // namespace

at::Tensor paged_attention(
    const at::Tensor& query, const at::Tensor& key_pages, const at::Tensor& value_pages, const at::Tensor& page_table,
    const at::Tensor& lengths) {
  TORCH_CHECK(
      query.dim() == 3 && key_pages.dim() == 4 && page_table.dim() == 2 && page_table.numel() > 0,
      "paged_attention: query must be (batch, heads, width), key_pages (pages, page, key heads, width), and page_table "
      "(batch, pages of a sequence), but their shapes are ", query.sizes(), ", ", key_pages.sizes(), " and ",
      page_table.sizes());
  const int64_t batch = query.size(0);
  const int64_t width = query.size(2);
  const int64_t key_heads = key_pages.size(2);
  check(query, "paged_attention: query", query.sizes(), query.device());
  check(
      key_pages, "paged_attention: key_pages", {key_pages.size(0), key_pages.size(1), key_heads, width},
      query.device());
  check(value_pages, "paged_attention: value_pages", key_pages.sizes(), query.device());
  check_shape(page_table, "paged_attention: page_table", at::kInt, {batch, page_table.size(1)}, query.device());
  check_shape(lengths, "paged_attention: lengths", at::kInt, {batch}, query.device());
  TORCH_CHECK(width == 64 || width == 128, "paged_attention: the width must be 64 or 128, but is ", width);
  TORCH_CHECK(
      key_heads > 0 && query.size(1) % key_heads == 0,
      "paged_attention: ", query.size(1), " query heads are no multiple of ", key_heads, " heads of keys");
  // Places are 32-bit numbers, with a margin beyond the end.
  const int64_t capacity = page_table.size(1) * key_pages.size(1);
  TORCH_CHECK(
      std::max(capacity, key_pages.size(0) * key_pages.size(1)) <= std::numeric_limits<int32_t>::max() / 2 &&
          batch <= kMaxGridY && divide_up(capacity, kRound) <= kMaxGridY,
      "paged_attention: ", batch, " sequences of up to ", capacity, " keys are too many");

  const c10::cuda::CUDAGuard guard(query.device());
  at::Tensor out = at::empty_like(query);
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  Problem problem{};
  problem.query = data<Half>(query);
  problem.keys = data<Half>(key_pages);
  problem.values = data<Half>(value_pages);
  problem.page_table = data<int>(page_table);
  problem.lengths = data<int>(lengths);
  problem.out = mutable_data<Half>(out);
  problem.query_heads = static_cast<int>(query.size(1));
  problem.key_heads = static_cast<int>(key_heads);
  problem.head_blocks = static_cast<int>(divide_up(query.size(1) / key_heads, kHeads));
  problem.page = static_cast<int>(key_pages.size(1));
  problem.most_pages = static_cast<int>(page_table.size(1));
  const int64_t blocks = kWaves * multiprocessors(query.get_device());
  const int64_t rounds = divide_up(capacity * batch * key_heads * problem.head_blocks, blocks * kRound);
  problem.part_keys = static_cast<int>(std::min<int64_t>(rounds, kMostRounds) * kRound);
  problem.parts = static_cast<int>(divide_up(capacity, problem.part_keys));
  problem.scale = static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(width)));
  at::Tensor part_values;
  at::Tensor part_sums;
  if (problem.parts > 1) {
    const auto options = query.options().dtype(at::kFloat);
    part_values = at::empty({batch, query.size(1), problem.parts, width}, options);
    part_sums = at::empty({batch, query.size(1), problem.parts, 2}, options);
    problem.part_values = mutable_data<float>(part_values);
    problem.part_sums = reinterpret_cast<float2*>(mutable_data<float>(part_sums));
  }
  if (width == 64) {
    launch<64>(problem, batch);
  } else {
    launch<128>(problem, batch);
  }
  return out;
}
"""

extension = load_inline(
    name="paged_attention_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["paged_attention"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-ftz=true",  # exp2f is then one instruction
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90,code=sm_90",
    ],
)


class ModelNew(nn.Module):
    """Attends to the keys and values that the page table of each sequence names."""

    def __init__(self) -> None:
        super().__init__()

    def forward(
        self, query: torch.Tensor, key_pages: torch.Tensor, value_pages: torch.Tensor, page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        return extension.paged_attention(query, key_pages, value_pages, page_table, lengths)
