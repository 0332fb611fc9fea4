"""Softmax and its backward, one block a row, the row kept in registers.

What bounds it: memory. The forward reads x and writes out. The backward reads out and its gradient and writes the
gradient of x. That is five times 512 MiB at full size, and nothing less would do: out is larger than the L2 cache.

How it works: a block of 256 threads holds its row in registers, as up to eight vectors of 16 bytes a thread, so that
each pass over memory is the only one. The forward reduces a maximum and a sum over the block, the backward a dot
product. Loads are independent, and several blocks share an SM, so that loads of some cover the barriers of others. All
streams are marked evict-first.

The number of vectors is a template parameter, because registers can't be indexed at run time. Rows longer than 8192
values, rows that are no multiple of four and misaligned tensors are read several times, value by value.
"""

from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor softmax(const at::Tensor& x);
at::Tensor softmax_backward(const at::Tensor& gradient, const at::Tensor& out);
"""

CUDA_SOURCE = r"""
#include <cfloat>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostLoads = 8;  // of 16 bytes, a thread
constexpr unsigned int kAll = 0xffffffffu;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

struct Sum {
  static constexpr float kNothing = 0.0f;
  static __device__ float of(float a, float b) { return a + b; }
};

struct Maximum {
  static constexpr float kNothing = -FLT_MAX;
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

// Every thread's values combined, for every thread. All threads of the block must call it, with memory of its own.
template <typename Operation>
__device__ float across_block(float value, float (&partial)[kWarps]) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Operation::of(value, __shfl_xor_sync(kAll, value, distance));
  }
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = value;
  }
  __syncthreads();
  float result = partial[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    result = Operation::of(result, partial[warp]);
  }
  return result;
}

// One block a row of at most kThreads * kLoads vectors; width counts them.
template <int kLoads>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const float4* __restrict__ x, float4* __restrict__ out, int64_t width) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  x += blockIdx.x * width + threadIdx.x;
  out += blockIdx.x * width + threadIdx.x;
  const int left = static_cast<int>(width) - static_cast<int>(threadIdx.x);  // of the row, from this thread on
  float4 kept[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    kept[i] = i * kThreads < left ? __ldcs(x + i * kThreads) : make_float4(-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX);
  }
  float largest = Maximum::kNothing;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    largest = fmaxf(largest, fmaxf(fmaxf(kept[i].x, kept[i].y), fmaxf(kept[i].z, kept[i].w)));
  }
  largest = across_block<Maximum>(largest, maxima);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    kept[i].x = __expf(kept[i].x - largest);
    kept[i].y = __expf(kept[i].y - largest);
    kept[i].z = __expf(kept[i].z - largest);
    kept[i].w = __expf(kept[i].w - largest);
    if (i * kThreads < left) {
      sum += (kept[i].x + kept[i].y) + (kept[i].z + kept[i].w);
    }
  }
  const float factor = 1.0f / across_block<Sum>(sum, sums);
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    if (i * kThreads < left) {
      __stcs(
          out + i * kThreads,
          make_float4(kept[i].x * factor, kept[i].y * factor, kept[i].z * factor, kept[i].w * factor));
    }
  }
}

template <int kLoads>
__global__ void __launch_bounds__(kThreads) backward_kernel(
    const float4* __restrict__ gradient, const float4* __restrict__ out, float4* __restrict__ x_gradient,
    int64_t width) {
  __shared__ float sums[kWarps];
  gradient += blockIdx.x * width + threadIdx.x;
  out += blockIdx.x * width + threadIdx.x;
  x_gradient += blockIdx.x * width + threadIdx.x;
  const int left = static_cast<int>(width) - static_cast<int>(threadIdx.x);
  float4 g[kLoads];
  float4 y[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const bool inside = i * kThreads < left;
    y[i] = inside ? __ldcs(out + i * kThreads) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    g[i] = inside ? __ldcs(gradient + i * kThreads) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  float dot = 0.0f;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    dot += (g[i].x * y[i].x + g[i].y * y[i].y) + (g[i].z * y[i].z + g[i].w * y[i].w);
  }
  dot = across_block<Sum>(dot, sums);
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    if (i * kThreads < left) {
      __stcs(
          x_gradient + i * kThreads,
          make_float4(
              y[i].x * (g[i].x - dot), y[i].y * (g[i].y - dot), y[i].z * (g[i].z - dot), y[i].w * (g[i].w - dot)));
    }
  }
}

// One block a row of any length, read three times.
__global__ void __launch_bounds__(kThreads) any_forward_kernel(
    const float* __restrict__ x, float* __restrict__ out, int64_t columns) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  x += blockIdx.x * columns;
  out += blockIdx.x * columns;
  float largest = Maximum::kNothing;
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    largest = fmaxf(largest, x[column]);
  }
  largest = across_block<Maximum>(largest, maxima);
  float sum = 0.0f;
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    sum += __expf(x[column] - largest);
  }
  const float factor = 1.0f / across_block<Sum>(sum, sums);
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    out[column] = __expf(x[column] - largest) * factor;
  }
}

// One block a row of any length, read twice.
__global__ void __launch_bounds__(kThreads) any_backward_kernel(
    const float* __restrict__ gradient, const float* __restrict__ out, float* __restrict__ x_gradient,
    int64_t columns) {
  __shared__ float sums[kWarps];
  gradient += blockIdx.x * columns;
  out += blockIdx.x * columns;
  x_gradient += blockIdx.x * columns;
  float dot = 0.0f;
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    dot += gradient[column] * out[column];
  }
  dot = across_block<Sum>(dot, sums);
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    x_gradient[column] = out[column] * (gradient[column] - dot);
  }
}

bool is_aligned(const float* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) == 0;
}

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_cuda(), "softmax: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "softmax: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(tensor.dim() == 2, "softmax: ", name, " must be (rows, columns), but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "softmax: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ", tensor.strides());
  TORCH_CHECK(tensor.size(0) <= kMaxBlocks, "softmax: ", tensor.size(0), " rows are too many for one launch");
}

// The loads a thread needs for a row of so many columns, or 0 if the row can't be kept.
int64_t loads_for(int64_t columns, std::initializer_list<const float*> pointers) {
  for (const float* pointer : pointers) {
    if (!is_aligned(pointer)) return 0;
  }
  const int64_t loads = (columns / 4 + kThreads - 1) / kThreads;
  return columns % 4 == 0 && loads <= kMostLoads ? loads : 0;
}

}  // namespace

at::Tensor softmax(const at::Tensor& x) {
  check(x, "x");
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const auto grid = static_cast<unsigned int>(x.size(0));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const int64_t loads = loads_for(columns, {from, to});
  if (loads == 0) {
    any_forward_kernel<<<grid, kThreads, 0, stream>>>(from, to, columns);
  } else {
    static_assert(kMostLoads == 8, "the largest of the cases below");
    const auto kernel = loads <= 1 ? forward_kernel<1>
        : loads <= 2               ? forward_kernel<2>
        : loads <= 4               ? forward_kernel<4>
                                   : forward_kernel<kMostLoads>;
    kernel<<<grid, kThreads, 0, stream>>>(
        reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to), columns / 4);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor softmax_backward(const at::Tensor& gradient, const at::Tensor& out) {
  check(gradient, "the gradient");
  check(out, "out");
  TORCH_CHECK(
      gradient.sizes() == out.sizes() && gradient.device() == out.device(),
      "softmax: the gradient must be like out, but has shape ", gradient.sizes(), " for ", out.sizes());
  const c10::cuda::CUDAGuard guard(out.device());
  at::Tensor x_gradient = at::empty_like(out);
  if (out.numel() == 0) {
    return x_gradient;
  }
  const int64_t columns = out.size(1);
  const float* g = gradient.const_data_ptr<float>();
  const float* y = out.const_data_ptr<float>();
  float* to = x_gradient.mutable_data_ptr<float>();
  const auto grid = static_cast<unsigned int>(out.size(0));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const int64_t loads = loads_for(columns, {g, y, to});
  if (loads == 0) {
    any_backward_kernel<<<grid, kThreads, 0, stream>>>(g, y, to, columns);
  } else {
    const auto kernel = loads <= 1 ? backward_kernel<1>
        : loads <= 2               ? backward_kernel<2>
        : loads <= 4               ? backward_kernel<4>
                                   : backward_kernel<kMostLoads>;
    kernel<<<grid, kThreads, 0, stream>>>(
        reinterpret_cast<const float4*>(g), reinterpret_cast<const float4*>(y), reinterpret_cast<float4*>(to),
        columns / 4);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x_gradient;
}
"""

extension = load_inline(
    name="softmax_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["softmax", "softmax_backward"],
)


class Softmax(torch.autograd.Function):
    """The softmax of each row, which keeps its output for the backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = extension.softmax(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (out,) = ctx.saved_tensors
        return extension.softmax_backward(gradient.contiguous(), out)


class ModelNew(nn.Module):
    """Takes the softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Softmax.apply(x)
