"""Group normalization, one block a group, half of the group in registers and half in shared memory.

What bounds it: memory. Each value is read once and written once: 512 MiB at full size, 0.13 ms at 4.2 TB/s.

The trick: a group of 8 channels of 64 x 64 places is 128 KB. It would fit the registers of an SM, but then a block had
the SM to itself, and nothing would be under way while it waits at its barriers. So a block of 512 threads keeps 64 KB
in registers, 32 values a thread, and the rest in shared memory: two blocks share an SM, and the loads of one go on
while the other adds up or writes. Memory sees each value twice, once in and once out.

A tile is one 16-byte vector for each thread. The first eight tiles stay in registers; the next go to shared memory, as
many as there is room for on an SM with two blocks; those of still larger groups are read again in each pass. What goes
to shared memory is copied there asynchronously, past the registers, so all 16 vectors that a thread keeps are under way
at once. A thread touches only what it stored itself, so that tiles need no barrier.

The variance takes a second pass over what was kept: squared distances from the mean, so that nothing cancels. The
channel of a vector is a division of 32 bits, which hides behind the loads.

Where channels don't begin at a multiple of 16 bytes, vectors have one value, and less of a group is kept. Small groups
are correct, but leave most of the block idle. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor group_norm(
    const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias, double eps);
"""

CUDA_SOURCE = r"""
#include <algorithm>
#include <limits>

#include <cuda_pipeline_primitives.h>

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "reduce.cuh"

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 2;  // at most 64 registers: half of them for what is kept
constexpr int kRegisterTiles = 8;
constexpr int kStreamed = 2;  // tiles that are not kept and that a thread loads at once: registers are short
constexpr int kReservedShared = 1024;  // bytes of an SM's shared memory that each block costs besides its own

__device__ float sum_of(float value) {
  return value;
}

__device__ float sum_of(float4 value) {
  return (value.x + value.y) + (value.z + value.w);
}

__device__ float squares_around(float value, float mean) {
  return (value - mean) * (value - mean);
}

__device__ float squares_around(float4 value, float mean) {
  return (squares_around(value.x, mean) + squares_around(value.y, mean)) +
      (squares_around(value.z, mean) + squares_around(value.w, mean));
}

__device__ float scaled(float value, float scale, float shift) {
  return value * scale + shift;
}

__device__ float4 scaled(float4 value, float scale, float shift) {
  return make_float4(
      scaled(value.x, scale, shift), scaled(value.y, scale, shift),
      scaled(value.z, scale, shift), scaled(value.w, scale, shift));
}

// One block a group. Vector is float4, or float where channels don't fill vectors or a tensor is misaligned. A tile is
// kThreads vectors; of the tiles of a group, the first kRegisterTiles stay in registers, the next shared_tiles in
// shared memory. group_vectors and channel_vectors count Vectors.
template <typename Vector>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) group_norm_kernel(
    const Vector* __restrict__ x,
    const float* __restrict__ weight,
    const float* __restrict__ bias,
    Vector* __restrict__ out,
    int group_vectors,
    int channel_vectors,
    int groups,
    int shared_tiles,
    float eps) {
  extern __shared__ float4 dynamic_shared[];
  Vector* const kept = reinterpret_cast<Vector*>(dynamic_shared) + threadIdx.x;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * group_vectors + threadIdx.x;
  const Vector* const from = x + begin;  // this thread's vector of a tile is from[tile * kThreads]
  Vector* const to = out + begin;
  const int tiles = (group_vectors - static_cast<int>(threadIdx.x) + kThreads - 1) / kThreads;  // of this thread
  const int first_streamed = kRegisterTiles + shared_tiles;
  const int shared_end = min(first_streamed, tiles);
  const float values = static_cast<float>(group_vectors) * (sizeof(Vector) / sizeof(float));

  // Straight to shared memory, past the registers, so that all of it is under way together with the register tiles.
  for (int tile = kRegisterTiles; tile < shared_end; ++tile) {
    __pipeline_memcpy_async(kept + (tile - kRegisterTiles) * kThreads, from + tile * kThreads, sizeof(Vector));
  }
  __pipeline_commit();
  Vector in_registers[kRegisterTiles];
#pragma unroll
  for (int tile = 0; tile < kRegisterTiles; ++tile) {
    if (tile < tiles) {
      in_registers[tile] = __ldcs(from + tile * kThreads);
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int tile = 0; tile < kRegisterTiles; ++tile) {
    sum += tile < tiles ? sum_of(in_registers[tile]) : 0.0f;
  }
  __pipeline_wait_prior(0);  // for this thread's own copies, and no other thread reads them
#pragma unroll 2
  for (int tile = kRegisterTiles; tile < shared_end; ++tile) {
    sum += sum_of(kept[(tile - kRegisterTiles) * kThreads]);
  }
#pragma unroll kStreamed
  for (int tile = first_streamed; tile < tiles; ++tile) {
    sum += sum_of(from[tile * kThreads]);
  }
  const float mean = across_block<kThreads>(sum, Sum()) / values;

  float squares = 0.0f;
#pragma unroll kStreamed
  for (int tile = tiles - 1; tile >= first_streamed; --tile) {
    squares += squares_around(from[tile * kThreads], mean);
  }
#pragma unroll 2
  for (int tile = kRegisterTiles; tile < shared_end; ++tile) {
    squares += squares_around(kept[(tile - kRegisterTiles) * kThreads], mean);
  }
#pragma unroll
  for (int tile = 0; tile < kRegisterTiles; ++tile) {
    squares += tile < tiles ? squares_around(in_registers[tile], mean) : 0.0f;
  }
  const float factor = rsqrtf(across_block<kThreads, true>(squares, Sum()) / values + eps);

  const int channels = group_vectors / channel_vectors;  // of a group
  const int first_channel = static_cast<int>(blockIdx.x % groups) * channels;
  const auto normalized = [&](Vector value, int tile) {
    const unsigned int place = threadIdx.x + tile * kThreads;
    const int channel = first_channel + static_cast<int>(place / static_cast<unsigned int>(channel_vectors));
    const float scale = factor * weight[channel];
    return scaled(value, scale, bias[channel] - mean * scale);
  };
#pragma unroll
  for (int tile = 0; tile < kRegisterTiles; ++tile) {
    if (tile < tiles) {
      __stcs(to + tile * kThreads, normalized(in_registers[tile], tile));
    }
  }
#pragma unroll 2
  for (int tile = kRegisterTiles; tile < shared_end; ++tile) {
    __stcs(to + tile * kThreads, normalized(kept[(tile - kRegisterTiles) * kThreads], tile));
  }
#pragma unroll kStreamed
  for (int tile = first_streamed; tile < tiles; ++tile) {
    __stcs(to + tile * kThreads, normalized(__ldcs(from + tile * kThreads), tile));
  }
}

struct Arguments {
  const float* x;
  const float* weight;
  const float* bias;
  float* out;
  int64_t batch;
  int64_t groups;
  int64_t group_values;
  int64_t channel_values;
  float eps;
};

template <typename Vector>
void launch(const Arguments& a) {
  constexpr int kVector = sizeof(Vector) / sizeof(float);
  constexpr int64_t kTileBytes = kThreads * sizeof(Vector);
  int device = 0;
  int of_sm = 0;
  int of_block = 0;  // the most that one block can have
  C10_CUDA_CHECK(cudaGetDevice(&device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&of_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  constexpr int kReduction = kThreads / kWarpSize * sizeof(float);  // what the kernel has besides the tiles
  const int64_t room = std::min(of_sm / kBlocksPerSm - kReservedShared, of_block) - kReduction;
  const int64_t tiles = (a.group_values / kVector + kThreads - 1) / kThreads;
  const int64_t shared_tiles = std::max<int64_t>(0, std::min(tiles - kRegisterTiles, room / kTileBytes));
  const int dynamic_bytes = static_cast<int>(shared_tiles * kTileBytes);
  C10_CUDA_CHECK(cudaFuncSetAttribute(
      group_norm_kernel<Vector>, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_bytes));
  const unsigned int grid = blocks_for(a.batch * a.groups);
  group_norm_kernel<Vector><<<grid, kThreads, dynamic_bytes, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const Vector*>(a.x),
      a.weight,
      a.bias,
      reinterpret_cast<Vector*>(a.out),
      static_cast<int>(a.group_values / kVector),
      static_cast<int>(a.channel_values / kVector),
      static_cast<int>(a.groups),
      static_cast<int>(shared_tiles),
      a.eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor group_norm(
    const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_tensor(x, "group_norm: x", at::kFloat, x.device());
  TORCH_CHECK(x.dim() >= 2, "group_norm: x must be (batch, channels, ...), but its shape is ", x.sizes());
  check_feature(weight, "group_norm: weight", x.size(1), x.device());
  check_feature(bias, "group_norm: bias", x.size(1), x.device());
  TORCH_CHECK(
      groups > 0 && x.size(1) % groups == 0,
      "group_norm: ", x.size(1), " channels can't be divided into ", groups, " groups");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const Arguments arguments{
      x.const_data_ptr<float>(),
      weight.const_data_ptr<float>(),
      bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(),
      x.size(0),
      groups,
      x.numel() / (x.size(0) * groups),
      x.numel() / (x.size(0) * x.size(1)),
      static_cast<float>(eps)};
  // Places in a group are 32-bit numbers, with a margin of a few batches beyond its end.
  TORCH_CHECK(
      arguments.group_values <= std::numeric_limits<int32_t>::max() / 2,
      "group_norm: groups of ", arguments.group_values, " values are too large");
  if (arguments.channel_values % 4 == 0 && is_aligned(x) && is_aligned(out)) {
    launch<float4>(arguments);
  } else {
    launch<float>(arguments);
  }
  return out;
}
"""

extension = load_inline(
    name="group_norm_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["group_norm"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Normalizes groups of channels, then scales and shifts the channels, in one kernel."""

    def __init__(self, channels: int, groups: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.groups = groups
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(channels))
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.group_norm(x, self.groups, self.weight, self.bias, self.eps)
