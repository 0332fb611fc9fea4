"""RMS normalization in bfloat16 and its backward, which reads its inputs once for both gradients.

What bounds it: memory. The forward reads x and writes out; the backward reads x and the gradient of out, and writes the
gradient of x. That is five times 256 MiB at full size. Nothing is kept from the forward but x.

The backward needs two sums along each row, of x^2 and of gradient * weight * x, and one along each column, of
gradient * x * scale. A block of 256 threads takes one row after the other. It holds x and the gradient of a row in
registers, reduces both sums along the row at once, and writes the gradient of x. The sums along columns stay in
registers, in float32, over all rows of a block: a thread has the same columns in each row. At the end each block writes
them once, and a second kernel adds those of all blocks in a fixed order. With four blocks an SM, that is 8 MB against
768 MB, and no atomics, so that equal calls give equal gradients.

Values stay packed as bfloat16, eight in four registers. Rows longer than 8192 values, and rows that don't all begin at
a multiple of 16 bytes, are read once for each pass, and their sums along columns are in memory.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
#include <tuple>

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, double eps);
"""

CUDA_SOURCE = r"""
#include <tuple>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "columns.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kMostKept = 4;     // vectors a thread
constexpr int kBlocksPerSm = 4;  // of the backward

// One block a row.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const Bfloat16* __restrict__ x, const Bfloat16* __restrict__ weight, Bfloat16* __restrict__ out, int columns,
    float eps) {
  using Values = Vector<Bfloat16, kWidth>;
  x += int64_t{blockIdx.x} * columns;
  out += int64_t{blockIdx.x} * columns;
  auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) { return load<kWidth>(x + column); });
  float squares = 0.0f;
  row.each([&](const Values& values, int) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      squares += values[i] * values[i];
    }
  });
  const float scale = rsqrtf(across_block<kThreads>(squares, Sum()) / static_cast<float>(columns) + eps);
  row.each([&](Values& values, int column) {
    const Values weights = load<kWidth>(weight + column);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values.set(i, values[i] * (scale * weights[i]));
    }
    store(out + column, values);
  });
}

template <int kWidth>
struct Pair {
  Vector<Bfloat16, kWidth> x;
  Vector<Bfloat16, kWidth> gradient;
};

// Each block takes every gridDim.x-th row, and writes its sums along columns to its part of `partial`. The sums need
// the scale of their row, which is known after its first pass.
template <int kWidth, int kKept>
__global__ void __launch_bounds__(kThreads, kKept <= 2 ? kBlocksPerSm : 2) backward_kernel(
    const Bfloat16* __restrict__ gradient, const Bfloat16* __restrict__ x, const Bfloat16* __restrict__ weight,
    Bfloat16* __restrict__ x_gradient, float* __restrict__ partial, int64_t rows, int columns, float eps) {
  ColumnSums<kThreads, kWidth, kKept, 1> column_sums(partial + int64_t{blockIdx.x} * columns, columns);
  for (int64_t number = blockIdx.x; number < rows; number += gridDim.x) {
    const int64_t begin = number * columns;
    auto row = keep_row<kThreads, kWidth, kKept>(columns, [=](int column) {
      return Pair<kWidth>{load<kWidth>(x + begin + column), load<kWidth>(gradient + begin + column)};
    });
    float2 sums = make_float2(0.0f, 0.0f);
    row.each([&](const Pair<kWidth>& pair, int column) {
      const Vector<Bfloat16, kWidth> weights = load<kWidth>(weight + column);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sums.x += pair.x[i] * pair.x[i];
        sums.y += pair.gradient[i] * weights[i] * pair.x[i];
      }
    });
    sums = across_block<kThreads, true>(
        sums, [](float2 one, float2 other) { return make_float2(one.x + other.x, one.y + other.y); });
    const float scale = rsqrtf(sums.x / static_cast<float>(columns) + eps);
    const float correction = scale * scale * (sums.y / static_cast<float>(columns));
    row.each_numbered([&](Pair<kWidth>& pair, int column, int kept) {
      const Vector<Bfloat16, kWidth> weights = load<kWidth>(weight + column);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float value = pair.x[i];
        column_sums.add(0, kept, column, i, pair.gradient[i] * value * scale);
        pair.x.set(i, scale * (pair.gradient[i] * weights[i] - value * correction));
      }
      store(x_gradient + begin + column, pair.x);
    });
  }
  column_sums.write();
}

void check_both(const at::Tensor& x, const at::Tensor& weight) {
  check_tensor(x, "rms_norm: x", at::kBFloat16, x.device());
  TORCH_CHECK(x.dim() == 2, "rms_norm: x must have two dimensions, but its shape is ", x.sizes());
  check_feature(weight, "rms_norm: weight", x.size(1), x.device(), at::kBFloat16);
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_both(x, weight);
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (x.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int64_t columns = x.size(1);
  const unsigned int rows = blocks_for(x.size(0));
  const bool vectors = fill_vectors<Bfloat16>(columns, {x, weight, out});
  launch_fitting<Bfloat16, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    forward_kernel<width(), kept()><<<rows, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<Bfloat16>(x), data<Bfloat16>(weight), mutable_data<Bfloat16>(out), static_cast<int>(columns),
        static_cast<float>(eps));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_both(x, weight);
  check_tensor(gradient, "rms_norm: the gradient", at::kBFloat16, x.device());
  TORCH_CHECK(
      gradient.sizes() == x.sizes(), "rms_norm: the gradient must have the shape of x, but has ", gradient.sizes(),
      " for ", x.sizes());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor x_gradient = at::empty_like(x);
  if (x.numel() == 0) {
    return {x_gradient, at::zeros_like(weight)};
  }
  at::Tensor weight_gradient = at::empty_like(weight);
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  const int64_t blocks = resident_blocks(rows, kBlocksPerSm);
  const at::Tensor partial = at::empty({blocks, columns}, x.options().dtype(at::kFloat));
  const bool vectors = fill_vectors<Bfloat16>(columns, {gradient, x, weight, x_gradient, partial});
  launch_fitting<Bfloat16, kThreads, kMostKept>(columns, vectors, [&](auto width, auto kept) {
    backward_kernel<width(), kept()><<<blocks_for(blocks), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<Bfloat16>(gradient), data<Bfloat16>(x), data<Bfloat16>(weight), mutable_data<Bfloat16>(x_gradient),
        mutable_data<float>(partial), rows, static_cast<int>(columns), static_cast<float>(eps));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  add_blocks<Bfloat16>(partial, weight_gradient);
  return {x_gradient, weight_gradient};
}
"""

extension = load_inline(
    name="rms_norm_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["rms_norm", "rms_norm_backward"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class RmsNorm(torch.autograd.Function):
    """The normalized rows, of which only the input is kept for the backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return extension.rms_norm(x, weight, eps)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        x_gradient, weight_gradient = extension.rms_norm_backward(gradient.contiguous(), *ctx.saved_tensors, ctx.eps)
        return x_gradient, weight_gradient, None


class ModelNew(nn.Module):
    """Divides each row by its root mean square, then scales its columns."""

    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RmsNorm.apply(x, self.weight, self.eps)
