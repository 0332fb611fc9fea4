"""Matrix-vector product, one warp a row.

What bounds it: memory. The best time is that of reading the matrix once.

Plain approach: the 32 lanes of a warp stride over their row, and their sums meet by shuffles. Neighbouring lanes touch
neighbouring addresses, so accesses are coalesced, but of four bytes each; a lane adds in one chain, so few of its loads
are under way at once, and the vector is read anew for each row, from L1 or L2.

Forward only: no gradient is recorded.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor matvec(const at::Tensor& A, const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;  // a block; they have nothing in common
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

__global__ void matvec_kernel(
    const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ out, int64_t rows, int64_t columns) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= rows) {
    return;  // the whole warp
  }
  const int lane = threadIdx.x % kWarp;
  float sum = 0.0f;
  for (int64_t column = lane; column < columns; column += kWarp) {
    sum += A[row * columns + column] * x[column];
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0) {
    out[row] = sum;
  }
}

void check(const at::Tensor& tensor, const char* name, int64_t dimensions) {
  TORCH_CHECK(tensor.is_cuda(), "matvec: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat, "matvec: ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(
      tensor.dim() == dimensions,
      "matvec: ", name, " must have ", dimensions, " dimension(s), but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "matvec: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ", tensor.strides());
}

}  // namespace

at::Tensor matvec(const at::Tensor& A, const at::Tensor& x) {
  check(A, "A", 2);
  check(x, "x", 1);
  TORCH_CHECK(A.device() == x.device(), "matvec: A is on ", A.device(), ", but x is on ", x.device());
  const int64_t rows = A.size(0);
  const int64_t columns = A.size(1);
  TORCH_CHECK(x.size(0) == columns, "matvec: A has ", columns, " columns, but x has ", x.size(0), " elements");
  const int64_t blocks = (rows + kWarps - 1) / kWarps;
  TORCH_CHECK(blocks <= kMaxBlocks, "matvec: ", rows, " rows are too many for one launch");

  const c10::cuda::CUDAGuard guard(A.device());
  at::Tensor out = at::empty({rows}, A.options());
  if (rows == 0) {
    return out;  // a grid without blocks is a launch error; without columns the kernel writes zeros
  }
  matvec_kernel<<<static_cast<unsigned int>(blocks), kWarp * kWarps, 0, at::cuda::getCurrentCUDAStream()>>>(
      A.const_data_ptr<float>(), x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="matvec_naive",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matvec"],
)


class ModelNew(nn.Module):
    """Multiplies a matrix and a vector."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return extension.matvec(A, x)
