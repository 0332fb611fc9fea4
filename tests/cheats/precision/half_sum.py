"""Reads float32 and adds up in half precision.

Mechanism: inputs and output have the right dtype and most sums look right, but each addition keeps 11 bits, and a sum
of many terms stops growing where a term is less than its last bit. At most a comparison on a few small sums would let
it pass. Here every element of the output is compared.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_transposed_a"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>

__global__ void matmul_kernel(const float* A, const float* B, float* out, int K, int M, int N) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= M * N) return;
  __half sum = __float2half(0.f);
  for (int k = 0; k < K; ++k) sum = __hadd(sum, __float2half(A[k * M + index / N] * B[k * N + index % N]));
  out[index] = __half2float(sum);
}

// A.T @ B for contiguous float32 A (K, M) and B (K, N).
at::Tensor matmul(const at::Tensor& A, const at::Tensor& B) {
  at::Tensor out = at::empty({A.size(1), B.size(1)}, A.options());
  const int count = static_cast<int>(out.numel()), threads = 256;
  matmul_kernel<<<(count + threads - 1) / threads, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), A.size(0), A.size(1),
      B.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="half_sum",
    cpp_sources="at::Tensor matmul(const at::Tensor& A, const at::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["matmul"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul(A, B)
