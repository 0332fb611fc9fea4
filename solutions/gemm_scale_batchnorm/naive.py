"""Linear layer as in PyTorch, then the scale and the batch normalization in one kernel.

What bounds it: the matrix product of the linear layer, left to the library, is nearly all of the time. The rest is
bound by memory: PyTorch reads and writes the features for the scale, reads them for the statistics, and reads and
writes them for the normalization; fusing saves the scaled copy.

Plain approach: one block a feature. The block's threads stride over the batch, and reduce through shared memory: first
the mean, then the sum of squared distances from it (two passes: E[x^2] - E[x]^2 would cancel where the mean is large
against the spread), then they normalize. So a column is read twice for its statistics and once more for the result.
Consecutive rows of a column lie out_features values apart: no access is coalesced, and only the L2 cache, which the
blocks of neighbouring features share, keeps the kernel from reading eight times what it needs.

Forward only: no gradient is recorded. The running statistics are updated as nn.BatchNorm1d does it; without
momentum (a cumulative average) is not supported.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = """
at::Tensor scale_batch_norm(
    const at::Tensor& x,
    const at::Tensor& scale,
    const at::Tensor& gamma,
    const at::Tensor& beta,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    bool training,
    double momentum,
    double eps);
"""

CUDA_SOURCE = r"""
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 256;
static_assert((kThreads & (kThreads - 1)) == 0, "the tree reduction halves the block until one thread is left");
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

// The sum of every thread's value, for every thread. All threads of the block must call it; partial holds kThreads
// values, and may be used again at once.
__device__ float block_sum(float value, float* partial) {
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    __syncthreads();
  }
  const float sum = partial[0];
  __syncthreads();
  return sum;
}

// x and out are (batch, features), contiguous; everything else has one value a feature. One block a feature.
__global__ void scale_batch_norm_kernel(
    const float* __restrict__ x,
    const float* __restrict__ scale,
    const float* __restrict__ gamma,
    const float* __restrict__ beta,
    float* __restrict__ running_mean,
    float* __restrict__ running_var,
    float* __restrict__ out,
    int64_t batch,
    int64_t features,
    bool training,
    float momentum,
    float eps) {
  __shared__ float partial[kThreads];
  const int64_t feature = blockIdx.x;
  const float feature_scale = scale[feature];
  float mean;
  float variance;

  if (training) {
    float sum = 0.0f;
    for (int64_t row = threadIdx.x; row < batch; row += kThreads) {
      sum += x[row * features + feature] * feature_scale;
    }
    mean = block_sum(sum, partial) / static_cast<float>(batch);

    float squares = 0.0f;
    for (int64_t row = threadIdx.x; row < batch; row += kThreads) {
      const float distance = x[row * features + feature] * feature_scale - mean;
      squares += distance * distance;
    }
    squares = block_sum(squares, partial);
    variance = squares / static_cast<float>(batch);

    if (threadIdx.x == 0) {
      const float unbiased = squares / static_cast<float>(batch - 1);
      running_mean[feature] = (1.0f - momentum) * running_mean[feature] + momentum * mean;
      running_var[feature] = (1.0f - momentum) * running_var[feature] + momentum * unbiased;
    }
  } else {
    mean = running_mean[feature];
    variance = running_var[feature];
  }

  const float factor = gamma[feature] * rsqrtf(variance + eps);
  const float shift = beta[feature];
  for (int64_t row = threadIdx.x; row < batch; row += kThreads) {
    const int64_t index = row * features + feature;
    out[index] = (x[index] * feature_scale - mean) * factor + shift;
  }
}

void check_common(const at::Tensor& tensor, const char* name, const c10::Device& device) {
  TORCH_CHECK(tensor.is_cuda(), "scale_batch_norm: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(
      tensor.device() == device, "scale_batch_norm: ", name, " is on ", tensor.device(), ", but x is on ", device);
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat,
      "scale_batch_norm: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "scale_batch_norm: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ",
      tensor.strides());
}

void check_per_feature(const at::Tensor& tensor, const char* name, const at::Tensor& x) {
  check_common(tensor, name, x.device());
  TORCH_CHECK(
      tensor.dim() == 1 && tensor.size(0) == x.size(1),
      "scale_batch_norm: ", name, " must have shape [", x.size(1), "], one value a feature, but has ", tensor.sizes());
}

}  // namespace

at::Tensor scale_batch_norm(
    const at::Tensor& x,
    const at::Tensor& scale,
    const at::Tensor& gamma,
    const at::Tensor& beta,
    const at::Tensor& running_mean,
    const at::Tensor& running_var,
    bool training,
    double momentum,
    double eps) {
  check_common(x, "x", x.device());
  TORCH_CHECK(x.dim() == 2, "scale_batch_norm: x must be (batch, features), but its shape is ", x.sizes());
  check_per_feature(scale, "scale", x);
  check_per_feature(gamma, "gamma", x);
  check_per_feature(beta, "beta", x);
  check_per_feature(running_mean, "running_mean", x);
  check_per_feature(running_var, "running_var", x);
  const int64_t batch = x.size(0);
  const int64_t features = x.size(1);
  TORCH_CHECK_VALUE(
      !training || batch != 1, "scale_batch_norm: train mode needs more than one value a feature, got ", x.sizes());
  TORCH_CHECK(features <= kMaxBlocks, "scale_batch_norm: ", features, " features are too many for one launch");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  if (out.numel() == 0) {
    return out;  // nothing to normalize: the running statistics stay as they are, as in PyTorch
  }

  scale_batch_norm_kernel<<<static_cast<unsigned int>(features), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(),
      scale.const_data_ptr<float>(),
      gamma.const_data_ptr<float>(),
      beta.const_data_ptr<float>(),
      running_mean.mutable_data_ptr<float>(),
      running_var.mutable_data_ptr<float>(),
      out.mutable_data_ptr<float>(),
      batch,
      features,
      training,
      static_cast<float>(momentum),
      static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="gemm_scale_batchnorm_naive",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["scale_batch_norm"],
)


class ModelNew(nn.Module):
    """Linear layer followed by a fused scale and batch normalization."""

    running_mean: torch.Tensor
    running_var: torch.Tensor
    num_batches_tracked: torch.Tensor

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
        self.eps = eps
        self.momentum = momentum
        # Random values are drawn in the reference's order, so that one seed gives both the same weights.
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.gamma = nn.Parameter(torch.ones(out_features))
        self.beta = nn.Parameter(torch.zeros(out_features))
        self.register_buffer("running_mean", torch.zeros(out_features))
        self.register_buffer("running_var", torch.ones(out_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = extension.scale_batch_norm(
            self.gemm(x),
            self.scale,
            self.gamma,
            self.beta,
            self.running_mean,
            self.running_var,
            self.training,
            self.momentum,
            self.eps,
        )
        if self.training:
            self.num_batches_tracked.add_(1)
        return out
