"""Linear layer on tensor cores, scale and batch statistics in its epilogue, and one more pass to normalize.

What bounds it: the tensor cores. The linear layer's 137 GFLOP at full size take 2.0 ms at the 67 TFLOP/s of an H100
outside of them. Each float32 is two halves of 11 bits (`solutions/common/split.cuh`); three products of them make 412
GFLOP, 0.51 ms at the 810 TFLOP/s that its power allows. Before that memory bounds: splitting moves 0.6 GB in 0.2 ms.
The weights are split in every call, because they may change between calls. After it the output of 34 MB, in L2 for the
greater part, is read and written once more: 0.02 ms.

The product's epilogue adds the bias, scales, and writes mean and squared distances from the mean of the 16 rows that a
warp has of each column. The normalization merges these statistics of its columns (64 strips at full size; squared
distances, so that nothing cancels); the blocks of the first rows update the running statistics.

Any sizes work. An infinity in x or the weights may give NaN where the exact result is infinite; a NaN spreads. Forward
only: no gradient is recorded. The running statistics are updated as nn.BatchNorm1d does it; without momentum (a
cumulative average) is not supported.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor gemm_scale_batchnorm(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    const at::Tensor& scale,
    const at::Tensor& norm_weight,
    const at::Tensor& norm_bias,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    const at::Tensor& batches,
    bool training,
    double momentum,
    double eps);
"""

CUDA_SOURCE = r"""
#include "product.cuh"

namespace {

// Of each column of each strip of rows, (strips, N): the mean, and the sum of squared distances from it.
struct Statistics {
  float* means;
  float* squares;
};

// The sum of what the eight threads have that hold the same two columns of a strip.
__device__ __forceinline__ float2 sum_of_strip(float2 own) {
#pragma unroll
  for (int offset = 4; offset < kWarpSize; offset *= 2) {
    own.x += __shfl_xor_sync(kAllLanes, own.x, offset);
    own.y += __shfl_xor_sync(kAllLanes, own.y, offset);
  }
  return own;
}

// An epilogue: writes (sum + bias) * scale, and its statistics.
struct ScaleAndMeasure {
  split::Output out;
  const float* bias;
  const float* scale;
  Statistics statistics;

  template <int Sums>
  __device__ __forceinline__ void operator()(const float (&sums)[Sums], int, int first_row, int first_column) const {
    const int lane = threadIdx.x % kWarpSize;
    const int row = first_row + lane / 4;
    const int64_t left = out.M - first_row;
    if (left <= 0) {
      return;  // for the whole warp
    }
    const float each = 1.0f / static_cast<float>(left < split::kStripRows ? left : split::kStripRows);
    const bool inside[] = {row < out.M, row + 8 < out.M};
    const split::Shifts shifts(out, 0, row);
#pragma unroll
    for (int eight = 0; eight < Sums / 4; ++eight) {
      const int column = first_column + eight * 8 + lane % 4 * 2;
      float values[2][2] = {};  // of two rows, two columns
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (column + j < out.N) {
          const int shift = shifts.column(column + j);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float sum = split::scaled_back(sums[eight * 4 + i * 2 + j], shifts.rows[i] + shift);
            values[i][j] = (sum + bias[column + j]) * scale[column + j];
          }
        }
      }
      float2 total = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        out.write_two(0, row + 8 * i, column, values[i][0], values[i][1]);
        total.x += inside[i] ? values[i][0] : 0.0f;
        total.y += inside[i] ? values[i][1] : 0.0f;
      }
      total = sum_of_strip(total);
      const float2 mean = make_float2(total.x * each, total.y * each);
      float2 squares = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 distance = make_float2(values[i][0] - mean.x, values[i][1] - mean.y);
        squares.x += inside[i] ? distance.x * distance.x : 0.0f;
        squares.y += inside[i] ? distance.y * distance.y : 0.0f;
      }
      squares = sum_of_strip(squares);
      const int64_t place = first_row / split::kStripRows * out.N + column;
      if (lane / 4 == 0 && column < out.N) {
        statistics.means[place] = mean.x;
        statistics.squares[place] = squares.x;
      }
      if (lane / 4 == 0 && column + 1 < out.N) {
        statistics.means[place + 1] = mean.y;
        statistics.squares[place + 1] = squares.y;
      }
    }
  }
};

// The batch normalization, of its learned values and its state.
struct Norm {
  const float* weight;
  const float* bias;
  float* running_mean;
  float* running_var;
  int64_t* batches;  // how many were seen
  float momentum;
  float eps;
  bool training;
};

constexpr int kNormColumns = 128;
constexpr int kNormRows = 128;
constexpr int kNormDown = 8;  // rows that a block's threads take at once
constexpr int kNormAcross = kNormColumns / kWarpSize;

// Mean, and sum of squared distances from it, of a column of M values, from those of its strips.
__device__ __forceinline__ float2 merged(const Statistics& statistics, int64_t n, int64_t M, int64_t N) {
  const int strips = static_cast<int>((M + split::kStripRows - 1) / split::kStripRows);
  const auto rows = [&](int strip) {
    const int64_t left = M - static_cast<int64_t>(strip) * split::kStripRows;
    return static_cast<float>(left < split::kStripRows ? left : split::kStripRows);
  };
  float sum = 0.0f;
#pragma unroll 16
  for (int strip = 0; strip < strips; ++strip) {
    sum += rows(strip) * statistics.means[strip * N + n];
  }
  const float mean = sum / static_cast<float>(M);
  float squares = 0.0f;
#pragma unroll 16
  for (int strip = 0; strip < strips; ++strip) {
    const float distance = statistics.means[strip * N + n] - mean;
    squares += statistics.squares[strip * N + n] + rows(strip) * distance * distance;
  }
  return make_float2(mean, squares);
}

// Normalizes 128 x 128 of out in place. Each block finds the statistics of its columns; those of the first rows write
// the state.
__global__ void __launch_bounds__(kWarpSize * kNormDown) normalize_kernel(
    Statistics statistics, Norm norm, float* __restrict__ out, int64_t M, int64_t N) {
  __shared__ float means[kNormColumns];
  __shared__ float factors[kNormColumns];
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kNormColumns;
  const int thread = threadIdx.y * kWarpSize + threadIdx.x;
  const int64_t n = first_column + thread;
  if (thread < kNormColumns && n < N) {
    float mean;
    float variance;
    if (norm.training) {
      const float2 found = merged(statistics, n, M, N);
      mean = found.x;
      variance = found.y / static_cast<float>(M);
      if (blockIdx.y == 0) {
        const float unbiased = found.y / static_cast<float>(M - 1);
        norm.running_mean[n] = (1.0f - norm.momentum) * norm.running_mean[n] + norm.momentum * mean;
        norm.running_var[n] = (1.0f - norm.momentum) * norm.running_var[n] + norm.momentum * unbiased;
      }
    } else {
      mean = norm.running_mean[n];
      variance = norm.running_var[n];
    }
    means[thread] = mean;
    factors[thread] = norm.weight[n] * rsqrtf(variance + norm.eps);
  }
  if (norm.training && blockIdx.x == 0 && blockIdx.y == 0 && thread == 0) {
    ++*norm.batches;
  }
  __syncthreads();

  const int64_t last_row = min((static_cast<int64_t>(blockIdx.y) + 1) * kNormRows, M);
  for (int64_t m = static_cast<int64_t>(blockIdx.y) * kNormRows + threadIdx.y; m < last_row; m += kNormDown) {
#pragma unroll
    for (int j = 0; j < kNormAcross; ++j) {
      const int column = j * kWarpSize + threadIdx.x;
      if (first_column + column < N) {
        float& value = out[m * N + first_column + column];
        value = (value - means[column]) * factors[column] + norm.bias[first_column + column];
      }
    }
  }
}

}  // namespace

at::Tensor gemm_scale_batchnorm(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    const at::Tensor& scale,
    const at::Tensor& norm_weight,
    const at::Tensor& norm_bias,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    const at::Tensor& batches,
    bool training,
    double momentum,
    double eps) {
  const auto device = x.device();
  check_float(x, "gemm_scale_batchnorm: x", 2, device);
  check_float(weight, "gemm_scale_batchnorm: weight", 2, device);
  TORCH_CHECK(
      x.size(1) == weight.size(1) && x.size(1) > 0,
      "gemm_scale_batchnorm: x and weight must agree in their second size, not 0, but have shapes ",
      x.sizes(), " and ", weight.sizes());
  TORCH_CHECK(
      batches.device() == device && batches.scalar_type() == at::kLong && batches.numel() == 1,
      "gemm_scale_batchnorm: batches must be one int64 on ", device, ", but is ", batches.scalar_type(), " of shape ",
      batches.sizes(), " on ", batches.device());
  const int64_t M = x.size(0);
  const int64_t N = weight.size(0);
  check_feature(running_mean, "gemm_scale_batchnorm: running_mean", N, device);
  check_feature(running_var, "gemm_scale_batchnorm: running_var", N, device);
  const Norm norm{
      check_feature(norm_weight, "gemm_scale_batchnorm: norm_weight", N, device),
      check_feature(norm_bias, "gemm_scale_batchnorm: norm_bias", N, device),
      running_mean.mutable_data_ptr<float>(),
      running_var.mutable_data_ptr<float>(),
      batches.mutable_data_ptr<int64_t>(),
      static_cast<float>(momentum),
      static_cast<float>(eps),
      training};
  TORCH_CHECK_VALUE(
      !training || M != 1, "gemm_scale_batchnorm: train mode needs more than one value a feature, got ", x.sizes());
  TORCH_CHECK(M <= kMaxGridY * kNormRows, "gemm_scale_batchnorm: ", M, " rows are too many for one launch");

  const c10::cuda::CUDAGuard guard(device);
  at::Tensor out = at::empty({M, N}, x.options());
  if (out.numel() == 0) {
    return out;  // nothing to normalize: the state stays as it is
  }
  const at::Tensor strips = at::empty({2, divide_up(M, split::kStripRows), N}, x.options());
  float* const means = strips.mutable_data_ptr<float>();
  const Statistics statistics{means, means + strips.stride(0)};
  const split::Operand left = split::rows_of(x);
  const split::Operand right = split::rows_of(weight);
  split::multiply(
      left, right,
      ScaleAndMeasure{
          {out, left, right},
          check_feature(bias, "gemm_scale_batchnorm: bias", N, device),
          check_feature(scale, "gemm_scale_batchnorm: scale", N, device),
          statistics});
  const dim3 grid(
      static_cast<unsigned int>(divide_up(N, kNormColumns)), static_cast<unsigned int>(divide_up(M, kNormRows)));
  normalize_kernel<<<grid, dim3(kWarpSize, kNormDown), 0, c10::cuda::getCurrentCUDAStream()>>>(
      statistics, norm, out.mutable_data_ptr<float>(), M, N);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="gemm_scale_batchnorm_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["gemm_scale_batchnorm"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
    ],
)


class ModelNew(nn.Module):
    """Linear layer followed by a scale and batch normalization, on tensor cores."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        scale_shape: tuple[int, ...],
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        if momentum is None:
            raise ValueError("momentum must be a number: a cumulative average (momentum=None) is not supported")
        # The modules hold parameters and state, made in the reference's order; their forward is not used.
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)
        self.eps = eps
        self.momentum = momentum

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.gemm_scale_batchnorm(
            x,
            self.gemm.weight,
            self.gemm.bias,
            self.scale,
            self.bn.weight,
            self.bn.bias,
            self.bn.running_mean,
            self.bn.running_var,
            self.bn.num_batches_tracked,
            self.training,
            self.momentum,
            self.eps,
        )
