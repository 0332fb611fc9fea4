"""Mean cross entropy and its backward, one pass over the logits in each.

What bounds it: memory. The forward reads the logits; the backward reads them again and writes their gradient. That is
three times 500 MiB at full size. The softmax is never written: the forward keeps the largest logit and the logarithm of
the sum of each row, from which the backward computes each probability again.

The forward is an online softmax: a thread keeps the largest logit it has met and the sum of exp(logit - largest), and
rescales the sum when a larger one comes. It takes 16 logits at a time: their maximum first, one rescaling, then 16
exponentials that don't depend on each other. A second, tiny kernel averages the losses of the rows in a fixed order.
The backward subtracts one at the target, in the thread that has it. It reads the gradient of the loss on the device, so
the host never waits.

A block of 512 threads takes a row, with four independent loads of 16 bytes a thread. Rows may begin anywhere (a
vocabulary of 50257, say): up to three logits before the first multiple of 16 bytes and up to three after the last are
taken one by one. So are all of them if logits and gradient don't lie alike.

A target outside of [0, classes) makes the loss and the row's gradient NaN; ignore_index, weights and label smoothing
are not supported.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
#include <tuple>

std::tuple<at::Tensor, at::Tensor> cross_entropy(const at::Tensor& logits, const at::Tensor& target);
at::Tensor cross_entropy_backward(
    const at::Tensor& gradient, const at::Tensor& logits, const at::Tensor& target, const at::Tensor& statistics);
"""

CUDA_SOURCE = r"""
#include <tuple>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>

#include "checks.cuh"

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksAnSm = 4;
constexpr int kMeanThreads = 1024;
constexpr int kLoads = 4;  // of 16 bytes, a thread, before any of them is needed
constexpr int kVector = 4;

// How a row divides into values before the first multiple of 16 bytes, vectors, and values after the last vector.
struct Division {
  int64_t head;
  int64_t vectors;
  int64_t tail;  // where it begins
};

__device__ int64_t misalignment(const float* row) {
  return reinterpret_cast<uintptr_t>(row) / sizeof(float) % kVector;
}

__device__ Division divide(const float* row, int64_t classes) {
  const int64_t head = min((kVector - misalignment(row)) % kVector, classes);
  const int64_t vectors = (classes - head) / kVector;
  return {head, vectors, head + vectors * kVector};
}

// The sum of exp(logit - largest) over some logits. `largest` begins as a finite number below all that occur, because
// the difference of two infinities would be NaN; half of the lowest, so that differences don't overflow either.
struct LogSum {
  float largest = -FLT_MAX / 2;
  float sum = 0.0f;
};

__device__ void raise(LogSum& to, float largest) {
  to.sum *= __expf(to.largest - largest);
  to.largest = largest;
}

__device__ void add(LogSum& to, float logit) {
  raise(to, fmaxf(to.largest, logit));
  to.sum += __expf(logit - to.largest);
}

__device__ LogSum merge(LogSum one, LogSum other) {
  raise(one, fmaxf(one.largest, other.largest));
  raise(other, one.largest);
  one.sum += other.sum;
  return one;
}

__device__ LogSum warp_merge(LogSum value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    LogSum other;
    other.largest = __shfl_xor_sync(kAllLanes, value.largest, distance);
    other.sum = __shfl_xor_sync(kAllLanes, value.sum, distance);
    value = merge(value, other);
  }
  return value;
}

// One block a row. statistics[row] is the largest logit, and the logarithm of the sum of exp(logit - largest).
__global__ void __launch_bounds__(kThreads, kBlocksAnSm) loss_kernel(
    const float* __restrict__ logits, const int64_t* __restrict__ target, float2* __restrict__ statistics,
    float* __restrict__ losses, int64_t classes) {
  const float* const row = logits + blockIdx.x * classes;
  const Division division = divide(row, classes);

  // Asked for first, needed last.
  const int64_t wanted = threadIdx.x == 0 ? target[blockIdx.x] : 0;
  const float target_logit = wanted >= 0 && wanted < classes ? row[wanted] : NAN;

  LogSum total;
  const auto* const body = reinterpret_cast<const float4*>(row + division.head);
  for (int64_t begin = threadIdx.x; begin < division.vectors; begin += kThreads * kLoads) {
    float4 loaded[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t vector = begin + load * kThreads;
      loaded[load] = vector < division.vectors ? __ldcs(body + vector)
                                               : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    }
    float largest = total.largest;
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      largest = fmaxf(largest, fmaxf(fmaxf(loaded[load].x, loaded[load].y), fmaxf(loaded[load].z, loaded[load].w)));
    }
    raise(total, largest);
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      total.sum += (__expf(loaded[load].x - largest) + __expf(loaded[load].y - largest)) +
          (__expf(loaded[load].z - largest) + __expf(loaded[load].w - largest));
    }
  }
  if (threadIdx.x < division.head) {
    add(total, row[threadIdx.x]);
  }
  if (threadIdx.x < classes - division.tail) {
    add(total, row[division.tail + threadIdx.x]);
  }

  __shared__ float largest_of[kThreads / kWarpSize];
  __shared__ float sum_of[kThreads / kWarpSize];
  total = warp_merge(total);
  if (threadIdx.x % kWarpSize == 0) {
    largest_of[threadIdx.x / kWarpSize] = total.largest;
    sum_of[threadIdx.x / kWarpSize] = total.sum;
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) {
    LogSum of_warp;
    if (threadIdx.x < kThreads / kWarpSize) {
      of_warp.largest = largest_of[threadIdx.x];
      of_warp.sum = sum_of[threadIdx.x];
    }
    total = warp_merge(of_warp);
    if (threadIdx.x == 0) {
      const float log_sum = logf(total.sum);
      statistics[blockIdx.x] = make_float2(total.largest, log_sum);
      losses[blockIdx.x] = log_sum + (total.largest - target_logit);
    }
  }
}

// One block: the mean of all losses, each thread's and each warp's share in a fixed order.
__global__ void __launch_bounds__(kMeanThreads)
    mean_kernel(const float* __restrict__ losses, float* __restrict__ mean, int64_t rows) {
  __shared__ float partial[kMeanThreads / kWarpSize];
  float sum = 0.0f;
#pragma unroll 4
  for (int64_t row = threadIdx.x; row < rows; row += kMeanThreads) {
    sum += losses[row];
  }
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (threadIdx.x % kWarpSize == 0) {
    partial[threadIdx.x / kWarpSize] = sum;
  }
  __syncthreads();
  static_assert(kMeanThreads == kWarpSize * kWarpSize, "one warp holds the sums of all");
  if (threadIdx.x < kWarpSize) {
    sum = partial[threadIdx.x];
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, distance);
    }
    if (threadIdx.x == 0) {
      *mean = sum / static_cast<float>(rows);  // NaN without rows, as in PyTorch
    }
  }
}

// One block a row.
__global__ void __launch_bounds__(kThreads, kBlocksAnSm) gradient_kernel(
    const float* __restrict__ gradient, const float* __restrict__ logits, const int64_t* __restrict__ target,
    const float2* __restrict__ statistics, float* __restrict__ logits_gradient, int64_t classes) {
  const float* const row = logits + blockIdx.x * classes;
  float* const to = logits_gradient + blockIdx.x * classes;
  const int64_t wanted = target[blockIdx.x];
  const float2 known = statistics[blockIdx.x];
  const float share = *gradient / static_cast<float>(gridDim.x);
  const float scale = wanted >= 0 && wanted < classes ? share : NAN;
  const auto probability = [&](float logit) { return __expf(logit - known.x - known.y); };
  const auto one_by_one = [&](int64_t column) {
    to[column] = scale * (probability(row[column]) - (column == wanted ? 1.0f : 0.0f));
  };

  const bool alike = misalignment(row) == misalignment(to);
  const Division division = alike ? divide(row, classes) : Division{classes, 0, classes};
  const auto* const from = reinterpret_cast<const float4*>(row + division.head);
  auto* const vectors_to = reinterpret_cast<float4*>(to + division.head);
  for (int64_t begin = threadIdx.x; begin < division.vectors; begin += kThreads * kLoads) {
    float4 loaded[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t vector = begin + load * kThreads;
      if (vector < division.vectors) {
        loaded[load] = __ldcs(from + vector);
      }
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t vector = begin + load * kThreads;
      if (vector < division.vectors) {
        const int64_t inside = wanted - division.head - vector * kVector;  // where the target is, from this vector on
        __stcs(
            vectors_to + vector,
            make_float4(
                scale * (probability(loaded[load].x) - (inside == 0 ? 1.0f : 0.0f)),
                scale * (probability(loaded[load].y) - (inside == 1 ? 1.0f : 0.0f)),
                scale * (probability(loaded[load].z) - (inside == 2 ? 1.0f : 0.0f)),
                scale * (probability(loaded[load].w) - (inside == 3 ? 1.0f : 0.0f))));
      }
    }
  }
  for (int64_t column = threadIdx.x; column < division.head; column += kThreads) {
    one_by_one(column);
  }
  if (threadIdx.x < classes - division.tail) {
    one_by_one(division.tail + threadIdx.x);
  }
}

void check_inputs(const at::Tensor& logits, const at::Tensor& target) {
  check_float(logits, "cross_entropy: logits", 2, logits.device());
  check_feature(target, "cross_entropy: target", logits.size(0), logits.device(), at::kLong);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  check_inputs(logits, target);
  const int64_t rows = logits.size(0);
  const c10::cuda::CUDAGuard guard(logits.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  at::Tensor losses = at::empty({rows}, logits.options());
  at::Tensor statistics = at::empty({rows, 2}, logits.options());
  at::Tensor mean = at::empty({}, logits.options());
  if (rows > 0) {  // a grid without blocks is a launch error
    loss_kernel<<<blocks_for(rows), kThreads, 0, stream>>>(
        logits.const_data_ptr<float>(), target.const_data_ptr<int64_t>(),
        reinterpret_cast<float2*>(statistics.mutable_data_ptr<float>()), losses.mutable_data_ptr<float>(),
        logits.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  mean_kernel<<<1, kMeanThreads, 0, stream>>>(losses.const_data_ptr<float>(), mean.mutable_data_ptr<float>(), rows);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {mean, statistics};
}

at::Tensor cross_entropy_backward(
    const at::Tensor& gradient, const at::Tensor& logits, const at::Tensor& target, const at::Tensor& statistics) {
  check_inputs(logits, target);
  check_float(gradient, "cross_entropy: the gradient", 0, logits.device());
  check_float(statistics, "cross_entropy: the statistics", 2, logits.device());
  TORCH_CHECK(
      statistics.size(0) == logits.size(0) && statistics.size(1) == 2,
      "cross_entropy: the statistics must be those of the forward, but their shape is ", statistics.sizes());
  const c10::cuda::CUDAGuard guard(logits.device());
  at::Tensor logits_gradient = at::empty_like(logits);
  if (logits.numel() == 0) {
    return logits_gradient;
  }
  const auto stream = c10::cuda::getCurrentCUDAStream();
  gradient_kernel<<<blocks_for(logits.size(0)), kThreads, 0, stream>>>(
      gradient.const_data_ptr<float>(), logits.const_data_ptr<float>(), target.const_data_ptr<int64_t>(),
      reinterpret_cast<const float2*>(statistics.const_data_ptr<float>()),
      logits_gradient.mutable_data_ptr<float>(), logits.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return logits_gradient;
}
"""

extension = load_inline(
    name="cross_entropy_backward_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["cross_entropy", "cross_entropy_backward"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class CrossEntropy(torch.autograd.Function):
    """Mean cross entropy, which keeps the logits, the targets and two numbers of each row for the backward."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mean, statistics = extension.cross_entropy(logits, target)
        ctx.save_for_backward(logits, target, statistics)
        return mean

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return extension.cross_entropy_backward(gradient, *ctx.saved_tensors), None


class ModelNew(nn.Module):
    """Mean cross entropy with integer targets, in one pass over the logits in each direction."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return CrossEntropy.apply(logits, target)
