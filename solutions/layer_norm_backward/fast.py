"""Layer normalization in float32 and its backward, which reads its inputs once for all three gradients.

What bounds it: memory. The forward reads x and writes out; the backward reads x and the gradient of out, and writes the
gradient of x. That is five times 512 MiB at full size. The forward keeps x, and the mean and the scale of each row.

A block of 512 threads holds a row in registers. The forward reduces a sum, and then the squares of the differences from
the mean, which loses no digits where the mean is large. In the backward a block takes one row after the other. It
reduces the row's two sums at once, and keeps those along columns in registers over all of its rows, since a thread has
the same columns in each row. At the end each block writes them once, and a second kernel adds those of all blocks in a
fixed order: with two blocks an SM, 9 MB against 1.5 GiB, and no atomics.

The number of 16-byte loads a thread is a template parameter: 1, 2 or 4. Rows longer than 8192 values, rows that are no
multiple of four and misaligned tensors are read several times, value by value.
"""

from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
#include <tuple>

std::tuple<at::Tensor, at::Tensor> layer_norm(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);
std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& statistics);
"""

CUDA_SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 512;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostLoads = 4;   // of 16 bytes, a thread
constexpr int kIn = 4;          // values in a load
constexpr int kBlocksAnSm = 2;  // of the backward
constexpr int kSlices = 8;      // of the blocks' sums, which are added in parallel
constexpr unsigned int kAll = 0xffffffffu;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

__device__ void unpack(float4 packed, float (&values)[kIn]) {
  values[0] = packed.x;
  values[1] = packed.y;
  values[2] = packed.z;
  values[3] = packed.w;
}

__device__ float4 pack(const float (&values)[kIn]) {
  return make_float4(values[0], values[1], values[2], values[3]);
}

// The sums of every thread's two values, for every thread. All threads of the block must call it.
__device__ float2 across_block(float2 own) {
  __shared__ float2 partial[kWarps];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    own.x += __shfl_xor_sync(kAll, own.x, distance);
    own.y += __shfl_xor_sync(kAll, own.y, distance);
  }
  __syncthreads();  // until all threads have read the sums of the last time
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = own;
  }
  __syncthreads();
  float2 all = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
    all.x += partial[warp].x;
    all.y += partial[warp].y;
  }
  return all;
}

__device__ float across_block(float own) {
  return across_block(make_float2(own, 0.0f)).x;
}

// One block a row of at most kThreads * kLoads vectors; width counts them. Writes mean and scale of the row.
template <int kLoads>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const float4* __restrict__ x, const float4* __restrict__ weight, const float4* __restrict__ bias,
    float4* __restrict__ out, float2* __restrict__ statistics, int64_t width, float eps) {
  x += blockIdx.x * width + threadIdx.x;
  out += blockIdx.x * width + threadIdx.x;
  weight += threadIdx.x;
  bias += threadIdx.x;
  const int left = static_cast<int>(width) - static_cast<int>(threadIdx.x);  // of the row, from this thread on
  const float columns = static_cast<float>(width * kIn);
  float values[kLoads][kIn];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    unpack(i * kThreads < left ? __ldcs(x + i * kThreads) : make_float4(0.0f, 0.0f, 0.0f, 0.0f), values[i]);
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    sum += (values[i][0] + values[i][1]) + (values[i][2] + values[i][3]);
  }
  const float mean = across_block(sum) / columns;
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
#pragma unroll
    for (int j = 0; j < kIn; ++j) {
      values[i][j] -= mean;
      squares += i * kThreads < left ? values[i][j] * values[i][j] : 0.0f;
    }
  }
  const float scale = rsqrtf(across_block(squares) / columns + eps);
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    if (i * kThreads < left) {
      float weights[kIn];
      float biases[kIn];
      unpack(weight[i * kThreads], weights);
      unpack(bias[i * kThreads], biases);
#pragma unroll
      for (int j = 0; j < kIn; ++j) {
        values[i][j] = values[i][j] * scale * weights[j] + biases[j];
      }
      __stcs(out + i * kThreads, pack(values[i]));
    }
  }
  if (threadIdx.x == 0) {
    statistics[blockIdx.x] = make_float2(mean, scale);
  }
}

// Each block takes every gridDim.x-th row, and writes its sums along columns to its row of `partial`: those for the
// weight, then those for the bias.
template <int kLoads>
__global__ void __launch_bounds__(kThreads) backward_kernel(
    const float4* __restrict__ gradient, const float4* __restrict__ x, const float4* __restrict__ weight,
    const float2* __restrict__ statistics, float4* __restrict__ x_gradient, float4* __restrict__ partial,
    int64_t rows, int64_t width) {
  const int left = static_cast<int>(width) - static_cast<int>(threadIdx.x);
  const float columns = static_cast<float>(width * kIn);
  float weight_sums[kLoads][kIn] = {};
  float bias_sums[kLoads][kIn] = {};
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t at = row * width + threadIdx.x;
    const float2 known = statistics[row];
    float n[kLoads][kIn];
    float g[kLoads][kIn];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool inside = i * kThreads < left;
      const float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      unpack(inside ? __ldcs(x + at + i * kThreads) : nothing, n[i]);
      unpack(inside ? __ldcs(gradient + at + i * kThreads) : nothing, g[i]);
    }
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (i * kThreads < left) {
        float weights[kIn];
        unpack(weight[threadIdx.x + i * kThreads], weights);
#pragma unroll
        for (int j = 0; j < kIn; ++j) {
          n[i][j] = (n[i][j] - known.x) * known.y;
          weight_sums[i][j] += g[i][j] * n[i][j];
          bias_sums[i][j] += g[i][j];
          g[i][j] *= weights[j];
          sums.x += g[i][j];
          sums.y += g[i][j] * n[i][j];
        }
      }
    }
    sums = across_block(sums);
    const float mean = sums.x / columns;
    const float along = sums.y / columns;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (i * kThreads < left) {
#pragma unroll
        for (int j = 0; j < kIn; ++j) {
          g[i][j] = known.y * (g[i][j] - mean - n[i][j] * along);
        }
        __stcs(x_gradient + at + i * kThreads, pack(g[i]));
      }
    }
  }
  partial += blockIdx.x * 2 * width + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    if (i * kThreads < left) {
      partial[i * kThreads] = pack(weight_sums[i]);
      partial[width + i * kThreads] = pack(bias_sums[i]);
    }
  }
}

// One block a row of any length.
__global__ void __launch_bounds__(kThreads) any_forward_kernel(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ out, float2* __restrict__ statistics, int64_t columns, float eps) {
  x += blockIdx.x * columns;
  out += blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    sum += x[column];
  }
  const float mean = across_block(sum) / static_cast<float>(columns);
  float squares = 0.0f;
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    const float difference = x[column] - mean;
    squares += difference * difference;
  }
  const float scale = rsqrtf(across_block(squares) / static_cast<float>(columns) + eps);
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    out[column] = (x[column] - mean) * scale * weight[column] + bias[column];
  }
  if (threadIdx.x == 0) {
    statistics[blockIdx.x] = make_float2(mean, scale);
  }
}

// One block a row of any length.
__global__ void __launch_bounds__(kThreads) any_backward_kernel(
    const float* __restrict__ gradient, const float* __restrict__ x, const float* __restrict__ weight,
    const float2* __restrict__ statistics, float* __restrict__ x_gradient, int64_t columns) {
  gradient += blockIdx.x * columns;
  x += blockIdx.x * columns;
  x_gradient += blockIdx.x * columns;
  const float2 known = statistics[blockIdx.x];
  float2 sums = make_float2(0.0f, 0.0f);
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    const float product = gradient[column] * weight[column];
    sums.x += product;
    sums.y += product * (x[column] - known.x) * known.y;
  }
  sums = across_block(sums);
  const float mean = sums.x / static_cast<float>(columns);
  const float along = sums.y / static_cast<float>(columns);
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    const float n = (x[column] - known.x) * known.y;
    x_gradient[column] = known.y * (gradient[column] * weight[column] - mean - n * along);
  }
}

// A thread a column, a block row of the grid for every gridDim.y-th row of the matrix.
__global__ void __launch_bounds__(kThreads) any_columns_kernel(
    const float* __restrict__ gradient, const float* __restrict__ x, const float2* __restrict__ statistics,
    float* __restrict__ partial, int64_t rows, int64_t columns) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= columns) return;
  float weight_sum = 0.0f;
  float bias_sum = 0.0f;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int64_t at = row * columns + column;
    const float2 known = statistics[row];
    weight_sum += gradient[at] * ((x[at] - known.x) * known.y);
    bias_sum += gradient[at];
  }
  partial[2 * blockIdx.y * columns + column] = weight_sum;
  partial[(2 * blockIdx.y + 1) * columns + column] = bias_sum;
}

// Adds the sums of all blocks, a warp for 32 of them in each slice of the blocks.
__global__ void __launch_bounds__(kWarp * kSlices) add_kernel(
    const float* __restrict__ partial, float* __restrict__ gradients, int64_t blocks, int64_t count) {
  __shared__ float sums[kSlices][kWarp];
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0.0f;
  if (index < count) {
#pragma unroll 4
    for (int64_t block = threadIdx.y; block < blocks; block += kSlices) {
      sum += partial[block * count + index];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && index < count) {
#pragma unroll
    for (int slice = 1; slice < kSlices; ++slice) {
      sum += sums[slice][threadIdx.x];
    }
    gradients[index] = sum;
  }
}

// The loads a thread needs for a row of so many columns, or 0 if the row can't be kept.
int64_t loads_for(int64_t columns, std::initializer_list<const float*> pointers) {
  for (const float* pointer : pointers) {
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) != 0) return 0;
  }
  const int64_t loads = (columns / kIn + kThreads - 1) / kThreads;
  return columns % kIn == 0 && loads <= kMostLoads ? loads : 0;
}

void check(const at::Tensor& tensor, const char* name, const c10::Device& device) {
  TORCH_CHECK(tensor.is_cuda(), "layer_norm: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(tensor.device() == device, "layer_norm: ", name, " is on ", tensor.device(), ", but x is on ", device);
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat, "layer_norm: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "layer_norm: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ", tensor.strides());
}

void check_columns(const at::Tensor& x, const at::Tensor& values, const char* name) {
  check(values, name, x.device());
  TORCH_CHECK(
      x.dim() == 2 && values.dim() == 1 && values.size(0) == x.size(1),
      "layer_norm: ", name, " must have one value for each column of x, but x has shape ", x.sizes(), " and ", name,
      " ", values.sizes());
  TORCH_CHECK(x.size(0) <= kMaxBlocks, "layer_norm: ", x.size(0), " rows are too many for one launch");
}

const float4* four(const float* pointer) {
  return reinterpret_cast<const float4*>(pointer);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> layer_norm(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check(x, "x", x.device());
  check_columns(x, weight, "weight");
  check_columns(x, bias, "bias");
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  at::Tensor statistics = at::empty({x.size(0), 2}, x.options());
  if (x.numel() == 0) {
    return {out, statistics};  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const float* from = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* b = bias.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  auto* known = reinterpret_cast<float2*>(statistics.mutable_data_ptr<float>());
  const auto grid = static_cast<unsigned int>(x.size(0));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const auto epsilon = static_cast<float>(eps);
  const int64_t loads = loads_for(columns, {from, w, b, to});
  if (loads == 0) {
    any_forward_kernel<<<grid, kThreads, 0, stream>>>(from, w, b, to, known, columns, epsilon);
  } else {
    static_assert(kMostLoads == 4, "the largest of the cases below");
    const auto kernel = loads <= 1 ? forward_kernel<1> : loads <= 2 ? forward_kernel<2> : forward_kernel<kMostLoads>;
    kernel<<<grid, kThreads, 0, stream>>>(
        four(from), four(w), four(b), reinterpret_cast<float4*>(to), known, columns / kIn, epsilon);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, statistics};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& statistics) {
  check(x, "x", x.device());
  check(gradient, "the gradient", x.device());
  check(statistics, "the statistics", x.device());
  check_columns(x, weight, "weight");
  TORCH_CHECK(
      gradient.sizes() == x.sizes() && statistics.numel() == 2 * x.size(0),
      "layer_norm: the gradient must have the shape of x, but has ", gradient.sizes(), " for ", x.sizes());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor x_gradient = at::empty_like(x);
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  if (x.numel() == 0) {
    return {x_gradient, at::zeros_like(weight), at::zeros_like(weight)};
  }
  at::Tensor gradients = at::empty({2, columns}, x.options());  // of weight and bias
  int multiprocessors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, x.get_device()));
  const int64_t blocks = std::min<int64_t>(rows, int64_t{kBlocksAnSm} * multiprocessors);
  at::Tensor partial = at::empty({blocks, 2, columns}, x.options());
  float* sums = partial.mutable_data_ptr<float>();
  const float* g = gradient.const_data_ptr<float>();
  const float* from = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const auto* known = reinterpret_cast<const float2*>(statistics.const_data_ptr<float>());
  float* to = x_gradient.mutable_data_ptr<float>();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const int64_t loads = loads_for(columns, {g, from, w, to, sums});
  if (loads == 0) {
    any_backward_kernel<<<static_cast<unsigned int>(rows), kThreads, 0, stream>>>(g, from, w, known, to, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const dim3 grid(static_cast<unsigned int>((columns + kThreads - 1) / kThreads), static_cast<unsigned int>(blocks));
    any_columns_kernel<<<grid, kThreads, 0, stream>>>(g, from, known, sums, rows, columns);
  } else {
    const auto kernel = loads <= 1 ? backward_kernel<1> : loads <= 2 ? backward_kernel<2> : backward_kernel<kMostLoads>;
    kernel<<<static_cast<unsigned int>(blocks), kThreads, 0, stream>>>(
        four(g), four(from), four(w), known, reinterpret_cast<float4*>(to), reinterpret_cast<float4*>(sums), rows,
        columns / kIn);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const int64_t count = 2 * columns;
  add_kernel<<<static_cast<unsigned int>((count + kWarp - 1) / kWarp), dim3(kWarp, kSlices), 0, stream>>>(
      sums, gradients.mutable_data_ptr<float>(), blocks, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {x_gradient, gradients[0], gradients[1]};
}
"""

extension = load_inline(
    name="layer_norm_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["layer_norm", "layer_norm_backward"],
)


class LayerNorm(torch.autograd.Function):
    """The normalized rows. The input, and mean and scale of each row, are kept for the backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
        out, statistics = extension.layer_norm(x, weight, bias, eps)
        ctx.save_for_backward(x, weight, statistics)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (*extension.layer_norm_backward(gradient.contiguous(), *ctx.saved_tensors), None)


class ModelNew(nn.Module):
    """Normalizes each row to mean 0 and variance 1, then scales and shifts its columns."""

    def __init__(self, columns: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return LayerNorm.apply(x, self.weight, self.bias, self.eps)
