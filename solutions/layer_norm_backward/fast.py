"""Layer normalization in float32 and its backward, which reads its inputs once for all three gradients.

What bounds it: memory. The forward reads x and writes out; the backward reads x and the gradient of out, and writes the
gradient of x. That is five times 512 MiB at full size. The forward keeps x, and the mean and the scale of each row.

A block of 512 threads holds a row in registers. The forward reduces a sum, and then the squares of the differences from
the mean, which loses no digits where the mean is large. In the backward a block takes one row after the other. It
reduces the row's two sums at once, and keeps those along columns in registers over all of its rows, since a thread has
the same columns in each row. At the end each block writes them once, and a second kernel adds those of all blocks in a
fixed order: with two blocks an SM, 9 MB against 1.5 GiB, and no atomics.

Rows longer than 8192 values, rows that are no multiple of four and misaligned tensors are read once for each pass, and
their sums along columns are in memory.
"""

from pathlib import Path
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
#include <tuple>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "columns.cuh"

namespace {

constexpr int kThreads = 512;
constexpr int kMostKept = 4;     // vectors a thread
constexpr int kBlocksPerSm = 2;  // of the backward

// One block a row. Writes mean and scale of the row.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ out, float2* __restrict__ statistics, int columns, float eps) {
  using Values = Vector<float, kWidth>;
  x += int64_t{blockIdx.x} * columns;
  out += int64_t{blockIdx.x} * columns;
  auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) { return load<kWidth>(x + column); });
  float sum = 0.0f;
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      sum += values[i];
    }
  });
  const float mean = across_block<kThreads>(sum, Sum()) / static_cast<float>(columns);
  float squares = 0.0f;
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      squares += (values[i] - mean) * (values[i] - mean);
    }
  });
  const float scale = rsqrtf(across_block<kThreads, true>(squares, Sum()) / static_cast<float>(columns) + eps);
  row.each([&](Values& values, int column) {
    const Values weights = load<kWidth>(weight + column);
    const Values biases = load<kWidth>(bias + column);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values.set(i, (values[i] - mean) * scale * weights[i] + biases[i]);
    }
    store(out + column, values);
  });
  if (threadIdx.x == 0) {
    statistics[blockIdx.x] = make_float2(mean, scale);
  }
}

template <int kWidth>
struct Pair {
  Vector<float, kWidth> x;
  Vector<float, kWidth> gradient;
};

// Each block takes every gridDim.x-th row, and writes its sums along columns to its part of `partial`: those for the
// weight, then those for the bias.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads, kKept <= 2 ? kBlocksPerSm : 1) backward_kernel(
    const float* __restrict__ gradient, const float* __restrict__ x, const float* __restrict__ weight,
    const float2* __restrict__ statistics, float* __restrict__ x_gradient, float* __restrict__ partial, int64_t rows,
    int columns) {
  ColumnSums<kThreads, kWidth, kKept, 2> column_sums(partial + int64_t{blockIdx.x} * 2 * columns, columns);
  for (int64_t number = blockIdx.x; number < rows; number += gridDim.x) {
    const int64_t begin = number * columns;
    const float2 known = statistics[number];
    auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) {
      return Pair<kWidth>{load<kWidth>(x + begin + column), load<kWidth>(gradient + begin + column)};
    });
    // From here on, x is what was normalized, and the gradient is that of it.
    const auto normalize = [&](Pair<kWidth>& pair, int column) {
      const Vector<float, kWidth> weights = load<kWidth>(weight + column);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        pair.x.set(i, (pair.x[i] - known.x) * known.y);
        pair.gradient.set(i, pair.gradient[i] * weights[i]);
      }
    };
    float2 sums = make_float2(0.0f, 0.0f);
    row.each_numbered([&](Pair<kWidth>& pair, int column, int kept) {
      const Vector<float, kWidth> gradients = pair.gradient;
      normalize(pair, column);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        column_sums.add(0, kept, column, i, gradients[i] * pair.x[i]);
        column_sums.add(1, kept, column, i, gradients[i]);
        sums.x += pair.gradient[i];
        sums.y += pair.gradient[i] * pair.x[i];
      }
    });
    sums = across_block<kThreads, true>(
        sums, [](float2 one, float2 other) { return make_float2(one.x + other.x, one.y + other.y); });
    const float mean = sums.x / static_cast<float>(columns);
    const float along = sums.y / static_cast<float>(columns);
    row.each([&](Pair<kWidth>& pair, int column) {
      if constexpr (kKept == 0) {
        normalize(pair, column);
      }
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        pair.gradient.set(i, known.y * (pair.gradient[i] - mean - pair.x[i] * along));
      }
      store(x_gradient + begin + column, pair.gradient);
    });
  }
  column_sums.write();
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> layer_norm(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_float(x, "layer_norm: x", 2, x.device());
  const int64_t columns = x.size(1);
  check_feature(weight, "layer_norm: weight", columns, x.device());
  check_feature(bias, "layer_norm: bias", columns, x.device());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  at::Tensor statistics = at::empty({x.size(0), 2}, x.options());
  if (x.numel() == 0) {
    return {out, statistics};  // a grid without blocks is a launch error
  }
  const unsigned int rows = blocks_for(x.size(0));
  const bool vectors = fill_vectors<float>(columns, {x, weight, bias, out});
  launch_fitting<float, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    forward_kernel<width(), kept()><<<rows, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(x), data<float>(weight), data<float>(bias), mutable_data<float>(out),
        mutable_data<float2>(statistics), static_cast<int>(columns), static_cast<float>(eps));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, statistics};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& statistics) {
  check_float(x, "layer_norm: x", 2, x.device());
  check_float(gradient, "layer_norm: the gradient", 2, x.device());
  check_float(statistics, "layer_norm: the statistics", 2, x.device());
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  check_feature(weight, "layer_norm: weight", columns, x.device());
  TORCH_CHECK(
      gradient.sizes() == x.sizes() && statistics.numel() == 2 * rows,
      "layer_norm: the gradient must have the shape of x, but has ", gradient.sizes(), " for ", x.sizes());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor x_gradient = at::empty_like(x);
  if (x.numel() == 0) {
    return {x_gradient, at::zeros_like(weight), at::zeros_like(weight)};
  }
  at::Tensor gradients = at::empty({2, columns}, x.options());  // of weight and bias
  const int64_t blocks = resident_blocks(rows, kBlocksPerSm);
  const at::Tensor partial = at::empty({blocks, 2, columns}, x.options());
  const bool vectors = fill_vectors<float>(columns, {gradient, x, weight, x_gradient, partial});
  launch_fitting<float, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    backward_kernel<width(), kept()><<<blocks_for(blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(gradient), data<float>(x), data<float>(weight), data<float2>(statistics),
        mutable_data<float>(x_gradient), mutable_data<float>(partial), rows, static_cast<int>(columns));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  add_blocks<float>(partial, gradients);
  return {x_gradient, gradients[0], gradients[1]};
}
"""

extension = load_inline(
    name="layer_norm_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["layer_norm", "layer_norm_backward"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
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
