"""Softmax and its backward, one block a row, the row kept in registers.

What bounds it: memory. The forward reads x and writes out. The backward reads out and its gradient and writes the
gradient of x. That is five times 512 MiB at full size, less what L2 still has of out when the backward begins.

How it works: a block of 256 threads holds its row in registers, as up to eight vectors of 16 bytes a thread, so that
each pass over memory is the only one. The forward reduces a maximum and a sum over the block, the backward a dot
product. Loads are independent, and several blocks share an SM, so that loads of some cover the barriers of others. The
backward begins with the last rows, which L2 still has. On an H200 that and the lack of evict-first hints save 5 % of
both passes together: 0.643 ms instead of 0.678.

Rows longer than 8192 values, rows that are no multiple of four and misaligned tensors are read once for each pass.
"""

from pathlib import Path
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

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "rows.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kMostKept = 8;  // vectors a thread

// One block a row.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const float* __restrict__ x, float* __restrict__ out, int columns) {
  using Values = Vector<float, kWidth>;
  x += int64_t{blockIdx.x} * columns;
  out += int64_t{blockIdx.x} * columns;
  auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) { return load<kWidth>(x + column); });
  float largest = -FLT_MAX;
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      largest = fmaxf(largest, values[i]);
    }
  });
  largest = across_block<kThreads>(largest, Maximum());
  float sum = 0.0f;
  row.each([&](Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values.set(i, __expf(values[i] - largest));
      sum += values[i];
    }
  });
  const float factor = 1.0f / across_block<kThreads>(sum, Sum());
  row.each([&](Values& values, int column) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values.set(i, (kKept > 0 ? values[i] : __expf(values[i] - largest)) * factor);
    }
    store(out + column, values);
  });
}

template <int kWidth>
struct Pair {
  Vector<float, kWidth> out;
  Vector<float, kWidth> gradient;
};

// One block a row, the last ones first: L2 may still have what the forward wrote of them.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads) backward_kernel(
    const float* __restrict__ gradient, const float* __restrict__ out, float* __restrict__ x_gradient, int columns) {
  const int64_t begin = int64_t{gridDim.x - 1 - blockIdx.x} * columns;
  auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) {
    return Pair<kWidth>{load<kWidth>(out + begin + column), load<kWidth>(gradient + begin + column)};
  });
  float dot = 0.0f;
  row.each([&](const Pair<kWidth>& pair, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      dot += pair.gradient[i] * pair.out[i];
    }
  });
  dot = across_block<kThreads>(dot, Sum());
  row.each([&](Pair<kWidth>& pair, int column) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      pair.out.set(i, pair.out[i] * (pair.gradient[i] - dot));
    }
    store(x_gradient + begin + column, pair.out);
  });
}

}  // namespace

at::Tensor softmax(const at::Tensor& x) {
  check_float(x, "softmax: x", 2, x.device());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const unsigned int rows = blocks_for(x.size(0));
  const bool vectors = fill_vectors<float>(columns, {x, out});
  launch_fitting<float, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    forward_kernel<width(), kept()><<<rows, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(x), mutable_data<float>(out), static_cast<int>(columns));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor softmax_backward(const at::Tensor& gradient, const at::Tensor& out) {
  check_float(out, "softmax: out", 2, out.device());
  check_float(gradient, "softmax: the gradient", 2, out.device());
  TORCH_CHECK(
      gradient.sizes() == out.sizes(),
      "softmax: the gradient must be like out, but has shape ", gradient.sizes(), " for ", out.sizes());
  const c10::cuda::CUDAGuard guard(out.device());
  at::Tensor x_gradient = at::empty_like(out);
  if (out.numel() == 0) {
    return x_gradient;
  }
  const int64_t columns = out.size(1);
  const unsigned int rows = blocks_for(out.size(0));
  const bool vectors = fill_vectors<float>(columns, {gradient, out, x_gradient});
  launch_fitting<float, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    backward_kernel<width(), kept()><<<rows, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(gradient), data<float>(out), mutable_data<float>(x_gradient), static_cast<int>(columns));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x_gradient;
}
"""

extension = load_inline(
    name="softmax_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["softmax", "softmax_backward"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
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
