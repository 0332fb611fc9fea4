"""Gradient of an embedding table by linked lists of tokens: no zeroed table, no atomics on floats.

What bounds it: memory. The gradient is read once and the table is written once: 256 MiB and 250 MiB at full size,
0.13 ms at 4.2 TB/s. With atomics the table is written as zeros first, and then read and written again.

The trick: a row of the table that knows its tokens can add them up in registers and write itself once, with zeros if
there are none. A first kernel hangs each token into the list of its row: the head of a list is exchanged atomically for
the token, which keeps the former head as its successor. That is 4 bytes a token and 4 bytes a row, all of it in L2, and
needs no sorting and no prefix sum. In the second kernel a block of 128 threads takes 2048 values of a row of the table,
four 16-byte loads a thread for each token in the list; the successor is read together with the values, so following
the list costs no more than the loads. About ten blocks on an SM are 80 KB under way, twice the latency of memory times
an SM's share of the bandwidth.

The order of a list, and with it the rounding of tokens that occur more than twice, differs from run to run, as with
atomics. A list is walked one token after the other, at about a microsecond each, so a token that occurs thousands of
times takes milliseconds; evenly spread tokens, as here, occur a few times each.

Widths that are no multiples of four take the same kernel with scalar accesses. Tokens outside of [0, vocabulary) are
left out; PyTorch stops the device there. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor embedding_grad(const at::Tensor& tokens, const at::Tensor& grad, int64_t vocabulary);
"""

CUDA_SOURCE = r"""
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "checks.cuh"

namespace {

constexpr int kLinkThreads = 256;
constexpr int kThreads = 128;
constexpr int kLoads = 4;  // a thread and token
constexpr int kEnd = -1;   // of a list; all its bytes are 0xff, so that cudaMemset can write it

// heads has the first token of each row's list, and next the successor of each token.
__global__ void __launch_bounds__(kLinkThreads) link_kernel(
    const int64_t* __restrict__ tokens,
    int* __restrict__ heads,
    int* __restrict__ next,
    int64_t count,
    int64_t vocabulary) {
  const int64_t nth = static_cast<int64_t>(blockIdx.x) * kLinkThreads + threadIdx.x;
  if (nth < count && tokens[nth] >= 0 && tokens[nth] < vocabulary) {
    next[nth] = atomicExch(heads + tokens[nth], static_cast<int>(nth));
  }
}

__device__ void add(float& sum, float value) {
  sum += value;
}

__device__ void add(float4& sum, float4 value) {
  sum.x += value.x;
  sum.y += value.y;
  sum.z += value.z;
  sum.w += value.w;
}

__device__ void clear(float& sum) {
  sum = 0.0f;
}

__device__ void clear(float4& sum) {
  sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// One block takes kThreads * kLoads values of one row of the table. Value is float4 or float; width counts them.
template <typename Value>
__global__ void __launch_bounds__(kThreads) sum_kernel(
    const Value* __restrict__ grad,
    const int* __restrict__ heads,
    const int* __restrict__ next,
    Value* __restrict__ out,
    int64_t width,
    unsigned int blocks_a_row) {
  const unsigned int row = blockIdx.x / blocks_a_row;
  const int64_t first = static_cast<int64_t>(blockIdx.x - row * blocks_a_row) * kThreads * kLoads + threadIdx.x;

  Value sums[kLoads];
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    clear(sums[load]);
  }
  int token = heads[row];
  while (token != kEnd) {
    const int following = next[token];  // under way together with the values
    const Value* const from = grad + token * width;
    Value loaded[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      clear(loaded[load]);
      if (first + load * kThreads < width) {
        loaded[load] = __ldcs(from + first + load * kThreads);
      }
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      add(sums[load], loaded[load]);
    }
    token = following;
  }
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    if (first + load * kThreads < width) {
      __stcs(out + row * width + first + load * kThreads, sums[load]);
    }
  }
}

template <typename Value>
void launch_sum(
    const float* grad, const int* heads, const int* next, float* out, int64_t vocabulary, int64_t width) {
  constexpr int64_t kBlockValues = kThreads * kLoads;
  const int64_t blocks_a_row = divide_up(width, kBlockValues);
  sum_kernel<Value><<<blocks_for(vocabulary * blocks_a_row), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const Value*>(grad),
      heads,
      next,
      reinterpret_cast<Value*>(out),
      width,
      static_cast<unsigned int>(blocks_a_row));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor embedding_grad(const at::Tensor& tokens, const at::Tensor& grad, int64_t vocabulary) {
  check_float(grad, "embedding_grad: grad", 2, grad.device());
  check_tensor(tokens, "embedding_grad: tokens", at::kLong, grad.device());
  TORCH_CHECK(tokens.dim() == 1, "embedding_grad: tokens must have 1 dimension, but their shape is ", tokens.sizes());
  const int64_t count = tokens.size(0);
  const int64_t width = grad.size(1);
  TORCH_CHECK(
      grad.size(0) == count, "embedding_grad: there are ", count, " tokens, but ", grad.size(0), " rows of grad");
  TORCH_CHECK(vocabulary >= 0, "embedding_grad: a table can't have ", vocabulary, " rows");
  TORCH_CHECK(
      count <= std::numeric_limits<int>::max(), "embedding_grad: ", count, " tokens are too many for lists of int32");

  const c10::cuda::CUDAGuard guard(grad.device());
  at::Tensor out = at::empty({vocabulary, width}, grad.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const auto stream = c10::cuda::getCurrentCUDAStream();
  at::Tensor heads = at::empty({vocabulary}, tokens.options().dtype(at::kInt));
  at::Tensor next = at::empty({count}, tokens.options().dtype(at::kInt));
  int* const first = heads.mutable_data_ptr<int>();
  int* const following = next.mutable_data_ptr<int>();
  C10_CUDA_CHECK(cudaMemsetAsync(first, kEnd, vocabulary * sizeof(int), stream));
  if (count > 0) {
    link_kernel<<<blocks_for(divide_up(count, kLinkThreads)), kLinkThreads, 0, stream>>>(
        tokens.const_data_ptr<int64_t>(), first, following, count, vocabulary);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  const float* const from = grad.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  if (width % 4 == 0 && is_aligned(grad) && is_aligned(out)) {
    launch_sum<float4>(from, first, following, to, vocabulary, width / 4);
  } else {
    launch_sum<float>(from, first, following, to, vocabulary, width);
  }
  return out;
}
"""

extension = load_inline(
    name="embedding_grad_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["embedding_grad"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Adds rows into a table, each at the place that its token names."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        return extension.embedding_grad(tokens, grad, self.vocabulary)
