"""Convolution, bias, ReLU and maximum in one kernel, with the neighbourhood of two results in registers.

What bounds it: arithmetic. The image is read once and the maxima are written once: 135 MiB at full size, 0.034 ms at
4.2 TB/s. Each maximum needs four sums of 27 products, 2.8 G products together, 0.09 ms at the 60 TFLOP/s of an H100's
float32 units. Unfused, the convolution's result, four times as large as the maxima, goes to memory and back twice.

The trick: the three channels of the image are few enough for registers. A thread has two neighbouring maxima of all
output channels. They come from 2 x 4 places of the convolution, those from 4 x 6 of the image: 72 values, loaded once,
16 bytes at a time where they lie inside. The thread then goes through the output channels: 27 weights and the bias,
seven 16-byte reads of shared memory that all threads of a warp share, for 216 multiplications and additions in eight
independent sums. So a read of shared memory pays for 31 instructions, and registers give all other operands.

At up to 128 registers, four blocks of 128 threads share an SM; eight independent sums a thread hide the latency of
arithmetic, and a maximum, which needs no other thread, is stored as two neighbours at once.

The maximum of sums plus the bias is the bias plus the maximum, and ReLU comes last, once. NaN spreads, as in PyTorch.
An input of other than three channels is an error. More than 32 output channels are split over blocks. Where rows don't
begin at a multiple of 16 bytes, the same kernel takes columns one by one. Forward only: no gradient is recorded.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor conv_bias_relu_pool(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
"""

CUDA_SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_pipeline.h>

namespace {

constexpr int kWarpSize = 32;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kBlocksPerSm = 4;
constexpr int kIn = 3;     // channels of the image
constexpr int kTaps = 3;   // the filter is kTaps by kTaps
constexpr int kFilter = kIn * kTaps * kTaps;
constexpr int kHalves = 2;                   // of the output channels of a block: an instruction has 16
constexpr int kMostOut = 16 * kHalves;       // output channels of a block
constexpr int kTileRows = 1;                 // of maxima
constexpr int kTileColumns = 16;
constexpr int kMaxima = 4;                   // neighbours that a lane has, one float4
constexpr int kColumns = 2 * kTileColumns;   // of the convolution
static_assert(kColumns == kWarpSize, "a lane copies a column");
constexpr int kInputRows = 2 * kTileRows + kTaps - 1;
constexpr int kQuads = 7;  // of taps
constexpr int kSteps = 3;  // instructions of two quads; the last quad is by itself

// Modulo 8, a row begins 2 words after the one before, also from one channel to the next. So what an instruction reads
// of four rows, of each two words in eight, lies in different banks.
constexpr int kStride = kColumns + kTaps - 1;
constexpr int kPlane = (kInputRows * kStride + 1) / 8 * 8 + 6;
static_assert(kStride % 8 == 2 && kPlane % 8 == 2 * kTaps, "no two words in one bank");
constexpr int64_t kMostTiles = std::numeric_limits<int32_t>::max();  // so that 32-bit divisions do
constexpr int64_t kMaxGridY = 65535;

struct Sizes {
  int height;
  int width;
  int channels;
  int out_height;
  int out_width;
  unsigned int tile_rows;  // tiles that an image is high
  unsigned int tile_columns;
  unsigned int tiles;
  bool whole;  // a lane's maxima are stored as one float4
};

struct Place {
  int image;
  int row;     // the first one of the maxima
  int column;

  __device__ Place(unsigned int tile, const Sizes& sizes) {
    const unsigned int line = tile / sizes.tile_columns;
    column = (tile - line * sizes.tile_columns) * kTileColumns;
    image = line / sizes.tile_rows;
    row = (line - image * sizes.tile_rows) * kTileRows;
  }
};

// The larger one, or NaN if either is NaN.
__device__ float larger(float one, float other) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(one), "f"(other));
  return result;
}

// The upper 11 bits of a value, and what they lack. An instruction takes the upper 11 bits of that in turn.
__device__ void split(float value, uint32_t& high, uint32_t& low) {
  high = __float_as_uint(value) & 0xffffe000u;
  low = __float_as_uint(value - __uint_as_float(high));
}

// sums += filters * pixels: 16 output channels, 8 pixels and two quads of taps.
__device__ void multiply(float (&sums)[4], const uint32_t (&filters)[4], uint32_t first, uint32_t second) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(filters[0]), "r"(filters[1]), "r"(filters[2]), "r"(filters[3]), "r"(first), "r"(second));
}

// What a lane has of 16 filters, in the order of the instruction: of two of them, and two quads, its tap of four.
struct Filters {
  uint32_t high[kSteps][4];
  uint32_t low[kSteps][4];
  uint32_t last[4];  // both parts of the last quad

  __device__ Filters(const float* weight, int first_out, int channels) {
    const int lane = threadIdx.x % kWarpSize;
    const int k = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = first_out + 8 * i + lane / 4;
      const float* const filter = weight + static_cast<int64_t>(o) * kFilter;
#pragma unroll
      for (int quad = 0; quad < kQuads - 1; ++quad) {
        const int at = quad % 2 * 2 + i;
        const float tap = o < channels ? filter[(quad / kTaps * 4 + k) * kTaps + quad % kTaps] : 0.0f;
        split(tap, high[quad / 2][at], low[quad / 2][at]);
      }
      split(o < channels && k < kTaps ? filter[kFilter - kTaps + k] : 0.0f, last[i], last[2 + i]);
    }
  }
};

// Starts the copies of the pixels that a tile needs: a row and a column more on each side. Outside they are 0.
__device__ void copy_pixels(float* to, const float* x, const Place& place, const Sizes& sizes) {
  const int lane = threadIdx.x % kWarpSize;
  const int64_t plane = static_cast<int64_t>(sizes.height) * sizes.width;
  const float* const image = x + place.image * kIn * plane;
  const auto copy = [&](int c, int i, int j) {
    const int row = 2 * place.row - 1 + i;
    const int column = 2 * place.column - 1 + j;
    const bool inside = row >= 0 && row < sizes.height && column >= 0 && column < sizes.width;
    const int64_t line = min(max(row, 0), sizes.height - 1);  // in the image even where nothing is read
    const float* const from = image + c * plane + line * sizes.width + min(max(column, 0), sizes.width - 1);
    __pipeline_memcpy_async(to + c * kPlane + i * kStride + j, from, sizeof(float), inside ? 0 : sizeof(float));
  };
#pragma unroll
  for (int c = 0; c < kIn; ++c) {
#pragma unroll
    for (int i = 0; i < kInputRows; ++i) {
      copy(c, i, 1 + lane);
    }
  }
  for (int i = lane; i < 2 * kIn * kInputRows; i += kWarpSize) {
    copy(i / 2 / kInputRows, i / 2 % kInputRows, i % 2 * (kColumns + 1));
  }
}

// Eight places of a row of the convolution. `from` has the lane's places of the first three, next three and last quad.
__device__ void convolve(const float* const (&from)[kTaps], int at, const Filters (&filters)[kHalves], float (&sums)[kHalves][4]) {
  uint32_t high[kQuads];
  uint32_t low[kQuads];
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    split(from[quad / kTaps][at + quad % kTaps], high[quad], low[quad]);
  }
  // The small products come first, so that they are cut off as little as possible.
  const int last = kQuads - 1;
#pragma unroll
  for (int m = 0; m < kHalves; ++m) {
    multiply(sums[m], filters[m].last, low[last], low[last]);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int m = 0; m < kHalves; ++m) {
      multiply(sums[m], filters[m].high[step], low[2 * step], low[2 * step + 1]);
      multiply(sums[m], filters[m].low[step], high[2 * step], high[2 * step + 1]);
    }
  }
#pragma unroll
  for (int m = 0; m < kHalves; ++m) {
    multiply(sums[m], filters[m].last, high[last], high[last]);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int m = 0; m < kHalves; ++m) {
      multiply(sums[m], filters[m].high[step], high[2 * step], high[2 * step + 1]);
    }
  }
}

// A lane's maxima of the tile: four neighbours of each of four output channels.
__device__ void find_maxima(
    const float* pixels, const Filters (&filters)[kHalves], float (&maxima)[2 * kHalves][kMaxima]) {
  const int lane = threadIdx.x % kWarpSize;
  const int k = lane % 4;
  const int pixel = lane / 8 * 8 + lane / 4 % 2;
  const float* const from[kTaps] = {
      pixels + k / kTaps * kPlane + k % kTaps * kStride + pixel,
      pixels + (4 + k) / kTaps * kPlane + (4 + k) % kTaps * kStride + pixel,
      pixels + (kIn - 1) * kPlane + (kTaps - 1) * kStride + min(k, kTaps - 1) + pixel};
#pragma unroll
  for (int j = 0; j < kMaxima; ++j) {
    float sums[2][kHalves][4] = {};
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      convolve(from, row * kStride + 2 * j, filters, sums[row]);
    }
#pragma unroll
    for (int o = 0; o < 2 * kHalves; ++o) {
      const float* const upper = sums[0][o / 2] + o % 2 * 2;
      const float* const lower = sums[1][o / 2] + o % 2 * 2;
      maxima[o][j] = larger(larger(upper[0], upper[1]), larger(lower[0], lower[1]));
    }
  }
}

__device__ void store(float* to, const float (&maxima)[kMaxima], int column, const Sizes& sizes) {
  if (sizes.whole) {
    if (column < sizes.out_width) {
      __stcs(reinterpret_cast<float4*>(to), make_float4(maxima[0], maxima[1], maxima[2], maxima[3]));
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kMaxima; ++j) {
    if (column + j < sizes.out_width) {
      to[j] = maxima[j];
    }
  }
}

__global__ void __launch_bounds__(kThreads, kBlocksPerSm) conv_bias_relu_pool_kernel(
    const float* __restrict__ x,
    const float* __restrict__ weight,
    const float* __restrict__ bias,
    float* __restrict__ out,
    Sizes sizes) {
  __shared__ float shared[kWarps][2][kIn * kPlane];
  float(&pixels)[2][kIn * kPlane] = shared[threadIdx.x / kWarpSize];
  const int lane = threadIdx.x % kWarpSize;
  const int first_out = blockIdx.y * kMostOut;
  unsigned int tile = blockIdx.x * kWarps + threadIdx.x / kWarpSize;
  if (tile < sizes.tiles) {
    copy_pixels(pixels[0], x, Place(tile, sizes), sizes);
  }
  __pipeline_commit();
  const Filters filters[kHalves] = {{weight, first_out, sizes.channels}, {weight, first_out + 16, sizes.channels}};
  float biases[2 * kHalves];
#pragma unroll
  for (int i = 0; i < 2 * kHalves; ++i) {
    const int o = first_out + 8 * i + lane / 4;
    biases[i] = o < sizes.channels ? bias[o] : 0.0f;
  }
  const int64_t out_plane = static_cast<int64_t>(sizes.out_height) * sizes.out_width;
  for (int stage = 0; tile < sizes.tiles; stage = 1 - stage) {
    const Place place(tile, sizes);
    tile += gridDim.x * kWarps;
    if (tile < sizes.tiles) {
      copy_pixels(pixels[1 - stage], x, Place(tile, sizes), sizes);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();
    const int column = place.column + lane % 4 * kMaxima;
#pragma unroll 1
    for (int row = 0; row < min(kTileRows, sizes.out_height - place.row); ++row) {
      float maxima[2 * kHalves][kMaxima];
      find_maxima(pixels[stage] + 2 * row * kStride, filters, maxima);
      float* to = out + (static_cast<int64_t>(place.image) * sizes.channels + first_out + lane / 4) * out_plane +
          static_cast<int64_t>(place.row + row) * sizes.out_width + column;
#pragma unroll
      for (int i = 0; i < 2 * kHalves; ++i) {
#pragma unroll
        for (int j = 0; j < kMaxima; ++j) {
          maxima[i][j] = larger(maxima[i][j] + biases[i], 0.0f);
        }
        if (first_out + 8 * i + lane / 4 < sizes.channels) {
          store(to, maxima[i], column, sizes);
        }
        to += 8 * out_plane;
      }
    }
    __syncwarp();  // all lanes are done with the pixels, which the next turn overwrites
  }
}

bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) == 0;
}

int64_t ceil_div(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

void check(const at::Tensor& tensor, const char* name, int64_t dimensions, const at::Tensor& x) {
  TORCH_CHECK(
      tensor.is_cuda(), "conv_bias_relu_pool: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(
      tensor.device() == x.device(),
      "conv_bias_relu_pool: ", name, " is on ", tensor.device(), ", but x is on ", x.device());
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat,
      "conv_bias_relu_pool: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(
      tensor.dim() == dimensions,
      "conv_bias_relu_pool: ", name, " must have ", dimensions, " dimension(s), but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "conv_bias_relu_pool: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ",
      tensor.strides());
}

}  // namespace

at::Tensor conv_bias_relu_pool(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check(x, "x", 4, x);
  check(weight, "weight", 4, x);
  check(bias, "bias", 1, x);
  const int64_t channels = weight.size(0);
  TORCH_CHECK(
      x.size(1) == kIn && weight.size(1) == kIn && weight.size(2) == kTaps && weight.size(3) == kTaps,
      "conv_bias_relu_pool: x must have 3 channels and weight must be (channels, 3, 3, 3), but they have ", x.sizes(),
      " and ", weight.sizes());
  TORCH_CHECK(
      bias.size(0) == channels, "conv_bias_relu_pool: there are ", channels, " filters, but bias has ", bias.sizes());
  const int64_t height = x.size(2);
  const int64_t width = x.size(3);
  TORCH_CHECK(
      height >= 2 && width >= 2, "conv_bias_relu_pool: x must have at least 2 x 2 places, but has ", x.sizes());

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0), channels, height / 2, width / 2}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t tile_rows = ceil_div(out.size(2), kTileRows);
  const int64_t tile_columns = ceil_div(out.size(3), kTileColumns);
  const int64_t tiles = x.size(0) * tile_rows * tile_columns;
  const int64_t parts = ceil_div(channels, kMostOut);
  TORCH_CHECK(
      tiles <= kMostTiles && height <= kMostTiles / 2 && width <= kMostTiles / 2 && parts <= kMaxGridY,
      "conv_bias_relu_pool: an input of shape ", x.sizes(), " is too large for one launch");

  int multiprocessors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, x.get_device()));
  const int64_t blocks = std::min<int64_t>(ceil_div(tiles, kWarps), multiprocessors * kBlocksPerSm);
  float* const to = out.mutable_data_ptr<float>();
  const Sizes sizes{
      static_cast<int>(height),
      static_cast<int>(width),
      static_cast<int>(channels),
      static_cast<int>(out.size(2)),
      static_cast<int>(out.size(3)),
      static_cast<unsigned int>(tile_rows),
      static_cast<unsigned int>(tile_columns),
      static_cast<unsigned int>(tiles),
      out.size(3) % kMaxima == 0 && is_aligned(to)};
  const dim3 grid(static_cast<unsigned int>(blocks), static_cast<unsigned int>(parts));
  conv_bias_relu_pool_kernel<<<grid, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), to, sizes);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="conv_bias_relu_pool_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["conv_bias_relu_pool"],
)


class ModelNew(nn.Module):
    """Convolution with bias, ReLU and maximum over windows of 2 x 2, in one kernel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.conv_bias_relu_pool(x, self.conv.weight, self.conv.bias)
