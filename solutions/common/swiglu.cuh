// SwiGLU, with and without its backward: x (tokens, 2 * hidden) and out (tokens, hidden) in one pass.
#pragma once

#include <ATen/ops/empty.h>

#include "rows.cuh"

namespace {
namespace swiglu_form {

constexpr int kThreads = 128;
constexpr int kPerThread = 2;  // vectors of each stream: independent loads

// Calls `function` with the row and the columns of this thread's vectors. A block does a piece of one row, so that its
// place follows from its number with one division a block and none a thread.
template <int kWidth, typename Function>
__device__ __forceinline__ void each_vector(
    unsigned int block, unsigned int blocks_per_row, int64_t hidden, Function function) {
  const unsigned int row = block / blocks_per_row;
  const int64_t first = (int64_t{block - row * blocks_per_row} * kThreads * kPerThread + threadIdx.x) * kWidth;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t column = first + i * kThreads * kWidth;
    if (column < hidden) {
      function(row, column, i);
    }
  }
}

// The fast division is good to 2 units in the last place. Where its divisor is huge (a below -87) it may give 0 instead
// of a result below 1e-35.
__device__ __forceinline__ float sigmoid(float a) {
  return __fdividef(1.0f, 1.0f + __expf(-a));
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads) forward_kernel(
    const float* __restrict__ x, float* __restrict__ out, int64_t hidden, unsigned int blocks_per_row) {
  using Values = Vector<float, kWidth>;
  Values a[kPerThread];
  Values b[kPerThread];
  each_vector<kWidth>(blockIdx.x, blocks_per_row, hidden, [&](int64_t row, int64_t column, int i) {
    a[i] = load<kWidth>(x + 2 * row * hidden + column);
    b[i] = load<kWidth>(x + (2 * row + 1) * hidden + column);
  });
  each_vector<kWidth>(blockIdx.x, blocks_per_row, hidden, [&](int64_t row, int64_t column, int i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      a[i].set(j, __fdividef(a[i][j], 1.0f + __expf(-a[i][j])) * b[i][j]);
    }
    store(out + row * hidden + column, a[i]);
  });
}

void check_halves(const at::Tensor& x) {
  check_float(x, "swiglu: x", 2, x.device());
  TORCH_CHECK(x.size(1) % 2 == 0, "swiglu: the rows of x must have two halves, but its shape is ", x.sizes());
}

// Calls `launch` with the width of vectors, the number of blocks and that of blocks that share a row.
template <typename Launch>
void launch_pieces(const at::Tensor& x, bool vectors, Launch launch) {
  const int64_t width = vectors ? 4 : 1;
  const int64_t blocks_per_row = divide_up(x.size(1) / 2, kThreads * kPerThread * width);
  const unsigned int blocks = blocks_for(x.size(0) * blocks_per_row);
  if (vectors) {
    launch(std::integral_constant<int, 4>(), blocks, static_cast<unsigned int>(blocks_per_row));
  } else {
    launch(std::integral_constant<int, 1>(), blocks, static_cast<unsigned int>(blocks_per_row));
  }
}

at::Tensor forward(const at::Tensor& x) {
  check_halves(x);
  const int64_t hidden = x.size(1) / 2;
  at::Tensor out = at::empty({x.size(0), hidden}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  launch_pieces(x, fill_vectors<float>(hidden, {x, out}), [&](auto width, unsigned int blocks, unsigned int of_row) {
    forward_kernel<width()><<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data<float>(x), mutable_data<float>(out), hidden, of_row);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

}  // namespace swiglu_form
}  // namespace
