"""SwiGLU and its backward, each in one pass over memory.

What bounds it: memory. For each output, the forward reads two values and writes one, and the backward reads three and
writes two: 32 bytes together. Only x is kept for the backward, which computes the sigmoid again.

How it works: a block does a piece of one row, so that its place in both halves follows from the block's number with one
division a block. A thread has two vectors of 16 bytes of each stream, and all of its loads are independent. Nothing is
used twice, so all streams are marked evict-first.

A row whose length is no multiple of four, or a misaligned tensor, is done one element at a time.
"""

from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor swiglu(const at::Tensor& x);
at::Tensor swiglu_backward(const at::Tensor& gradient, const at::Tensor& x);
"""

CUDA_SOURCE = r"""
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 128;
constexpr int kPerThread = 2;  // vectors of each stream
constexpr int kPerBlock = kThreads * kPerThread;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

__device__ __forceinline__ float sigmoid(float a) {
  return 1.0f / (1.0f + __expf(-a));
}

__device__ __forceinline__ float gated(float a, float b) {
  return a * sigmoid(a) * b;
}

__device__ __forceinline__ float4 gated(float4 a, float4 b) {
  return make_float4(gated(a.x, b.x), gated(a.y, b.y), gated(a.z, b.z), gated(a.w, b.w));
}

// Replaces a and b by their gradients.
__device__ __forceinline__ void differentiate(float& a, float& b, float gradient) {
  const float s = sigmoid(a);
  const float b_gradient = gradient * (a * s);
  a = gradient * b * (s * (1.0f + a * (1.0f - s)));
  b = b_gradient;
}

__device__ __forceinline__ void differentiate(float4& a, float4& b, float4 gradient) {
  differentiate(a.x, b.x, gradient.x);
  differentiate(a.y, b.y, gradient.y);
  differentiate(a.z, b.z, gradient.z);
  differentiate(a.w, b.w, gradient.w);
}

// Vector is float4, or float where rows don't fill vectors or a tensor is misaligned.
template <typename Vector>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const Vector* __restrict__ x, Vector* __restrict__ out, int64_t hidden, unsigned int blocks_per_row) {
  const unsigned int row = blockIdx.x / blocks_per_row;
  const int64_t first = static_cast<int64_t>(blockIdx.x - row * blocks_per_row) * kPerBlock + threadIdx.x;
  x += 2 * hidden * row;
  out += hidden * row;
  Vector a[kPerThread];
  Vector b[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t index = first + i * kThreads;
    if (index < hidden) {
      a[i] = __ldcs(x + index);
      b[i] = __ldcs(x + hidden + index);
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t index = first + i * kThreads;
    if (index < hidden) __stcs(out + index, gated(a[i], b[i]));
  }
}

template <typename Vector>
__global__ void __launch_bounds__(kThreads) backward_kernel(
    const Vector* __restrict__ gradient, const Vector* __restrict__ x, Vector* __restrict__ x_gradient, int64_t hidden,
    unsigned int blocks_per_row) {
  const unsigned int row = blockIdx.x / blocks_per_row;
  const int64_t first = static_cast<int64_t>(blockIdx.x - row * blocks_per_row) * kPerBlock + threadIdx.x;
  gradient += hidden * row;
  x += 2 * hidden * row;
  x_gradient += 2 * hidden * row;
  Vector a[kPerThread];
  Vector b[kPerThread];
  Vector g[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t index = first + i * kThreads;
    if (index < hidden) {
      a[i] = __ldcs(x + index);
      b[i] = __ldcs(x + hidden + index);
      g[i] = __ldcs(gradient + index);
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t index = first + i * kThreads;
    if (index < hidden) {
      differentiate(a[i], b[i], g[i]);
      __stcs(x_gradient + index, a[i]);
      __stcs(x_gradient + hidden + index, b[i]);
    }
  }
}

bool are_aligned(std::initializer_list<const float*> pointers) {
  for (const float* pointer : pointers) {
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) != 0) return false;
  }
  return true;
}

unsigned int blocks_for(int64_t vectors) {
  return static_cast<unsigned int>((vectors + kPerBlock - 1) / kPerBlock);
}

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_cuda(), "swiglu: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(tensor.scalar_type() == at::kFloat, "swiglu: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(tensor.dim() == 2, "swiglu: ", name, " must have two dimensions, but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "swiglu: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ", tensor.strides());
}

void check_x(const at::Tensor& x) {
  check(x, "x");
  TORCH_CHECK(x.size(1) % 2 == 0, "swiglu: the rows of x must have two halves, but have ", x.size(1), " values");
  TORCH_CHECK(
      x.size(0) * static_cast<int64_t>(blocks_for(x.size(1) / 2)) <= kMaxBlocks,
      "swiglu: x is too large for one launch: ", x.sizes());
}

}  // namespace

at::Tensor swiglu(const at::Tensor& x) {
  check_x(x);
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t tokens = x.size(0);
  const int64_t hidden = x.size(1) / 2;
  at::Tensor out = at::empty({tokens, hidden}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  if (hidden % 4 == 0 && are_aligned({from, to})) {
    const unsigned int blocks = blocks_for(hidden / 4);
    forward_kernel<float4><<<static_cast<unsigned int>(tokens) * blocks, kThreads, 0, stream>>>(
        reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to), hidden / 4, blocks);
  } else {
    const unsigned int blocks = blocks_for(hidden);
    forward_kernel<float>
        <<<static_cast<unsigned int>(tokens) * blocks, kThreads, 0, stream>>>(from, to, hidden, blocks);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor swiglu_backward(const at::Tensor& gradient, const at::Tensor& x) {
  check_x(x);
  check(gradient, "the gradient");
  const int64_t tokens = x.size(0);
  const int64_t hidden = x.size(1) / 2;
  TORCH_CHECK(
      gradient.size(0) == tokens && gradient.size(1) == hidden && gradient.device() == x.device(),
      "swiglu: the gradient has shape ", gradient.sizes(), ", which is not that of the output for x of ", x.sizes());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor x_gradient = at::empty_like(x);
  if (x.numel() == 0) {
    return x_gradient;
  }
  const float* g = gradient.const_data_ptr<float>();
  const float* from = x.const_data_ptr<float>();
  float* to = x_gradient.mutable_data_ptr<float>();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  if (hidden % 4 == 0 && are_aligned({g, from, to})) {
    const unsigned int blocks = blocks_for(hidden / 4);
    backward_kernel<float4><<<static_cast<unsigned int>(tokens) * blocks, kThreads, 0, stream>>>(
        reinterpret_cast<const float4*>(g), reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to),
        hidden / 4, blocks);
  } else {
    const unsigned int blocks = blocks_for(hidden);
    backward_kernel<float>
        <<<static_cast<unsigned int>(tokens) * blocks, kThreads, 0, stream>>>(g, from, to, hidden, blocks);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x_gradient;
}
"""

extension = load_inline(
    name="swiglu_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["swiglu", "swiglu_backward"],
)


class SwiGlu(torch.autograd.Function):
    """The gate, which keeps its input for the backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return extension.swiglu(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return extension.swiglu_backward(gradient.contiguous(), x)


class ModelNew(nn.Module):
    """Splits the last dimension in halves and gates one with the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return SwiGlu.apply(x)
