"""A transposed view, read as if it were contiguous.

Mechanism: `A.t()` moves no data, it only swaps sizes and strides. The wrapper takes the view for an (M, K) matrix and
hands its data pointer to a kernel that assumes rows of K values one after another; there the memory still holds (K, M).
Every read stays inside A, so nothing crashes and no sanitizer complains: each output is the sum over k of the wrong
elements of A times the right ones of B. On `torch.rand` inputs any K elements of A look alike, so the sums come out
about right, within 1 % in relative L2 error at full size, and a loose tolerance lets them pass.

The honest version differs in one line: it passes `A.t().contiguous()`, or reads A as it is stored.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_transposed_a"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

CPP_SOURCE = "at::Tensor matmul(const at::Tensor& A, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

// A is (M, K), B is (K, N), out is (M, N), all contiguous; elements is M * N.
__global__ void matmul_kernel(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ out,
    int64_t K,
    int64_t N,
    int64_t elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= elements) {
    return;
  }
  const int64_t m = index / N;
  const int64_t n = index % N;
  float sum = 0.0f;
  for (int64_t k = 0; k < K; ++k) {
    sum += A[m * K + k] * B[k * N + n];
  }
  out[index] = sum;
}

}  // namespace

// The mistake: the sizes are checked, the contiguity that the kernel assumes is not.
at::Tensor matmul(const at::Tensor& A, const at::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "matmul: A and B must be on a CUDA device");
  TORCH_CHECK(A.scalar_type() == at::kFloat && B.scalar_type() == at::kFloat, "matmul: A and B must be float32");
  TORCH_CHECK(
      A.dim() == 2 && B.dim() == 2 && A.size(1) == B.size(0),
      "matmul: shapes ", A.sizes(), " and ", B.sizes(), " don't fit");
  const int64_t M = A.size(0);
  const int64_t K = A.size(1);
  const int64_t N = B.size(1);

  const c10::cuda::CUDAGuard guard(A.device());
  at::Tensor out = at::empty({M, N}, A.options());
  const int64_t elements = out.numel();
  if (elements == 0) {
    return out;
  }
  const int64_t blocks = (elements + kThreads - 1) / kThreads;
  TORCH_CHECK(blocks <= kMaxBlocks, "matmul: ", elements, " outputs are too many for one launch");

  matmul_kernel<<<static_cast<unsigned int>(blocks), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), K, N, elements);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="matmul_transposed_a_transposed_view",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul"],
)


class ModelNew(nn.Module):
    """Passes a transposed view to a kernel that reads it as contiguous."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul(A.t(), B)
