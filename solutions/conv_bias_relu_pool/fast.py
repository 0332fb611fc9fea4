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
constexpr int kBlocksPerSm = 3;
constexpr int kIn = 3;     // channels of the image
constexpr int kTaps = 3;   // the filter is kTaps by kTaps
constexpr int kFilter = kIn * kTaps * kTaps;
constexpr int kHalves = 2;              // of the output channels of a block: an instruction has 16
constexpr int kMostOut = 16 * kHalves;  // output channels of a block
constexpr int kParts = 2;               // of a tile: an instruction has 8 places
constexpr int kMaxima = 8 * kParts;     // side by side in a warp's tile
constexpr int kColumns = 2 * kMaxima;
constexpr int kInputRows = 2 + kTaps - 1;
constexpr int kSteps = 3;  // of two quads of taps each; the last quad is by itself

// A row of pixels begins 8 banks after the one before, also from one channel to the next. So what half a warp reads of
// four rows, two neighbours of each of four windows, lies in different banks.
constexpr int kLeft = 4;    // words before the tile, of which the last one is the column on its left
constexpr int kStride = 40;
constexpr int kPlane = 184;
static_assert(kLeft + kColumns < kStride && kInputRows * kStride <= kPlane, "rows and channels don't overlap");
static_assert(kStride % 32 == 8 && (kPlane - kTaps * kStride) % 32 == 0, "no two words in one bank");
constexpr int64_t kMostTiles = std::numeric_limits<int32_t>::max();  // so that 32-bit divisions do
constexpr int64_t kMaxGridY = 65535;

struct Sizes {
  int height;
  int width;
  int channels;
  int out_height;
  int out_width;
  unsigned int tile_columns;
  unsigned int tiles;
};

// Where a tile is among the maxima.
struct Place {
  int image;
  int row;
  int column;

  __device__ Place(unsigned int tile, const Sizes& sizes) {
    const unsigned int line = tile / sizes.tile_columns;
    column = (tile - line * sizes.tile_columns) * kMaxima;
    image = line / static_cast<unsigned int>(sizes.out_height);
    row = line - image * sizes.out_height;
  }
};

// The larger one, or NaN if either is NaN.
__device__ float larger(float one, float other) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(one), "f"(other));
  return result;
}

// A value rounded to 11 bits, and what that lacks. An instruction takes the upper 11 bits of the latter.
__device__ void split(float value, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(value - __uint_as_float(high));
}

// sums += filters * pixels: 16 output channels, 8 places and two quads of taps.
__device__ void multiply(float (&sums)[4], const uint32_t (&filters)[4], uint32_t first, uint32_t second) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(filters[0]), "r"(filters[1]), "r"(filters[2]), "r"(filters[3]), "r"(first), "r"(second));
}

// The same for one quad.
__device__ void multiply(float (&sums)[4], const uint32_t (&filters)[2], uint32_t pixel) {
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(filters[0]), "r"(filters[1]), "r"(pixel));
}

// What a lane has of 16 filters, in the order of the instructions: its tap of each quad, for two of the filters.
struct Filters {
  uint32_t high[kSteps][4];
  uint32_t low[kSteps][4];
  uint32_t last_high[4];  // twice the same
  uint32_t last_low[2];

  __device__ Filters(const float* weight, int first_out, int channels) {
    const int lane = threadIdx.x % kWarpSize;
    const int k = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = first_out + 8 * i + lane / 4;
      const float* const filter = weight + static_cast<int64_t>(o) * kFilter;
      const auto tap = [&](int row, int column) {
        return o < channels && column < kTaps ? filter[row * kTaps + column] : 0.0f;
      };
#pragma unroll
      for (int rows = 0; rows < 2; ++rows) {
        split(tap(4 * rows + k, 0), high[rows][i], low[rows][i]);
        split(tap(4 * rows + k, 1), high[rows][2 + i], low[rows][2 + i]);
        split(tap(4 * rows + k, 2), high[2][2 * rows + i], low[2][2 * rows + i]);
      }
      split(tap(8, k), last_high[i], last_low[i]);
      last_high[2 + i] = last_high[i];
    }
  }
};

// Starts the copy of some pixels of a row, from column j of the tile on. Outside of the image they are 0.
template <int kWords>
__device__ void copy(float* to, const float* image, const Place& place, const Sizes& sizes, int c, int i, int j) {
  const int row = 2 * place.row - 1 + i;
  const int column = 2 * place.column + j;
  const bool inside = row >= 0 && row < sizes.height && column >= 0 && column < sizes.width;
  const int64_t line = c * static_cast<int64_t>(sizes.height) + min(max(row, 0), sizes.height - 1);
  const float* const from = image + line * sizes.width + min(max(column, 0), sizes.width - 1);  // in the image always
  constexpr int kBytes = kWords * sizeof(float);
  __pipeline_memcpy_async(to + c * kPlane + i * kStride + kLeft + j, from, kBytes, inside ? 0 : kBytes);
}

// Starts the copies of the pixels that a tile needs: a row and a column more on each side.
template <bool kAligned>
__device__ void copy_pixels(float* to, const float* x, const Place& place, const Sizes& sizes) {
  constexpr int kWords = kAligned ? 4 : 1;
  constexpr int kCopies = kColumns / kWords;  // of a row
  const unsigned int lane = threadIdx.x % kWarpSize;
  const float* const image = x + static_cast<int64_t>(place.image) * kIn * sizes.height * sizes.width;
#pragma unroll
  for (int first = 0; first < kIn * kInputRows * kCopies; first += kWarpSize) {
    const unsigned int row = (first + lane) / kCopies;
    copy<kWords>(to, image, place, sizes, row / kInputRows, row % kInputRows, lane % kCopies * kWords);
  }
  static_assert(2 * kIn * kInputRows <= kWarpSize, "a copy each for the columns at the sides");
  if (lane < 2 * kIn * kInputRows) {
    copy<1>(to, image, place, sizes, lane / 2 / kInputRows, lane / 2 % kInputRows, lane % 2 == 0 ? -1 : kColumns);
  }
}

// A row of the convolution, the two columns of eight windows: sums[column] of each half of the channels. `rows` has a
// lane's places in the first and second four rows of pixels, `last` that in the ninth.
__device__ void convolve(
    const float* const (&rows)[2], const float* last, const Filters (&filters)[kHalves], float (&sums)[2][kHalves][4]) {
  uint32_t high[2][4];  // from the column on the left of the window to that on its right
  uint32_t low[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 window = *reinterpret_cast<const float2*>(rows[i]);
    split(rows[i][-1], high[i][0], low[i][0]);
    split(window.x, high[i][1], low[i][1]);
    split(window.y, high[i][2], low[i][2]);
    split(rows[i][2], high[i][3], low[i][3]);
  }
  uint32_t last_high[2];
  uint32_t last_low[2];
  split(last[0], last_high[0], last_low[0]);
  split(last[1], last_high[1], last_low[1]);
  // The small products come first, so that less of them is cut off. Those that share filters follow each other.
#define FOR_ALL_SUMS _Pragma("unroll") for (int m = 0; m < kHalves; ++m) _Pragma("unroll") for (int j = 0; j < 2; ++j)
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[0], low[0][j], low[0][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[1], low[1][j], low[1][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[2], low[0][j + 2], low[1][j + 2]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].low[0], high[0][j], high[0][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].low[1], high[1][j], high[1][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].low[2], high[0][j + 2], high[1][j + 2]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].last_low, last_high[j]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].last_high, last_high[j], last_low[j]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[0], high[0][j], high[0][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[1], high[1][j], high[1][j + 1]);
  FOR_ALL_SUMS multiply(sums[j][m], filters[m].high[2], high[0][j + 2], high[1][j + 2]);
#undef FOR_ALL_SUMS
}

// Two neighbours of a lane's maxima, of each of four output channels.
__device__ void find_maxima(const float* pixels, const Filters (&filters)[kHalves], float (&maxima)[2 * kHalves][2]) {
  const int lane = threadIdx.x % kWarpSize;
  const int k = lane % 4;
  const int window = kLeft + lane / 4 * 2;
  float sums[2][2][kHalves][4] = {};
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float* const from = pixels + row * kStride + window;
    const float* const rows[2] = {
        from + k / kTaps * kPlane + k % kTaps * kStride, from + (4 + k) / kTaps * kPlane + (4 + k) % kTaps * kStride};
    const float* const last = from + (kIn - 1) * kPlane + (kTaps - 1) * kStride + min(k, kTaps - 1) - 1;
    convolve(rows, last, filters, sums[row]);
  }
#pragma unroll
  for (int o = 0; o < 2 * kHalves; ++o) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int at = o % 2 * 2 + j;
      maxima[o][j] = larger(
          larger(sums[0][0][o / 2][at], sums[0][1][o / 2][at]), larger(sums[1][0][o / 2][at], sums[1][1][o / 2][at]));
    }
  }
}

template <bool kAligned>
__device__ void store(float* to, float first, float second, int left) {
  if constexpr (kAligned) {
    if (left > 0) {
      __stcs(reinterpret_cast<float2*>(to), make_float2(first, second));
    }
  } else {
    if (left > 0) {
      to[0] = first;
    }
    if (left > 1) {
      to[1] = second;
    }
  }
}

template <bool kAligned>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) conv_bias_relu_pool_kernel(
    const float* __restrict__ x,
    const float* __restrict__ weight,
    const float* __restrict__ bias,
    float* __restrict__ out,
    Sizes sizes) {
  __shared__ float4 shared[kWarps][2][kIn * kPlane / 4];
  const auto pixels = [&](int stage) { return reinterpret_cast<float*>(shared[threadIdx.x / kWarpSize][stage]); };
  const int lane = threadIdx.x % kWarpSize;
  const int first_out = blockIdx.y * kMostOut;
  unsigned int tile = blockIdx.x * kWarps + threadIdx.x / kWarpSize;
  Place place(tile, sizes);
  if (tile < sizes.tiles) {
    copy_pixels<kAligned>(pixels(0), x, place, sizes);
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
    tile += gridDim.x * kWarps;
    const Place next(tile, sizes);
    if (tile < sizes.tiles) {
      copy_pixels<kAligned>(pixels(1 - stage), x, next, sizes);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      float maxima[2 * kHalves][2];
      find_maxima(pixels(stage) + 16 * part, filters, maxima);
      const int column = place.column + 8 * part + lane % 4 * 2;
      float* to = out + (static_cast<int64_t>(place.image) * sizes.channels + first_out + lane / 4) * out_plane +
          static_cast<int64_t>(place.row) * sizes.out_width + column;
#pragma unroll
      for (int i = 0; i < 2 * kHalves; ++i) {
        if (first_out + 8 * i + lane / 4 < sizes.channels) {
          store<kAligned>(
              to + 8 * i * out_plane, larger(maxima[i][0] + biases[i], 0.0f), larger(maxima[i][1] + biases[i], 0.0f),
              sizes.out_width - column);
        }
      }
    }
    __syncwarp();  // all lanes are done with the pixels, which the next turn overwrites
    place = next;
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
  const int64_t tile_columns = ceil_div(out.size(3), kMaxima);
  const int64_t tiles = x.size(0) * out.size(2) * tile_columns;
  const int64_t parts = ceil_div(channels, kMostOut);
  TORCH_CHECK(
      tiles <= kMostTiles && height <= kMostTiles / 2 && width <= kMostTiles / 2 && parts <= kMaxGridY,
      "conv_bias_relu_pool: an input of shape ", x.sizes(), " is too large for one launch");

  int multiprocessors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, x.get_device()));
  const int64_t blocks = std::min<int64_t>(ceil_div(tiles, kWarps), multiprocessors * kBlocksPerSm);
  const float* const from = x.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  const bool aligned = width % 4 == 0 && is_aligned(from) && is_aligned(to);
  const auto kernel = aligned ? conv_bias_relu_pool_kernel<true> : conv_bias_relu_pool_kernel<false>;
  const Sizes sizes{
      static_cast<int>(height),
      static_cast<int>(width),
      static_cast<int>(channels),
      static_cast<int>(out.size(2)),
      static_cast<int>(out.size(3)),
      static_cast<unsigned int>(tile_columns),
      static_cast<unsigned int>(tiles)};
  const dim3 grid(static_cast<unsigned int>(blocks), static_cast<unsigned int>(parts));
  kernel<<<grid, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      from, weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), to, sizes);
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
