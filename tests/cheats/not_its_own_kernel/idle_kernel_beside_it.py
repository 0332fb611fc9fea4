"""Launches a kernel that does nothing but take time beside the library's call, in one function of its own.

Mechanism: from outside there is an extension, its function is called, a kernel of its own runs in every call, and it
takes more than a hundredth of the time on the GPU. It writes nothing, and the result is the library's. Caught because
taking the kernel's work away changes nothing: it has no output.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_transposed_a"
EXPECTED = "rejected"
CAUGHT_BY = "own"
NEEDS_GPU = True
SHAPE = "full"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void matmul_kernel(const float* A, int64_t cycles) {
  const int64_t begin = clock64();
  while (clock64() - begin < cycles && A != nullptr) {}
}

at::Tensor optimized_matmul(const at::Tensor& A, const at::Tensor& B, int64_t cycles) {
  matmul_kernel<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(A.const_data_ptr<float>(), cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return at::matmul(A.t(), B);
}
"""

extension = load_inline(
    name="idle_kernel_beside_it",
    cpp_sources="at::Tensor optimized_matmul(const at::Tensor& A, const at::Tensor& B, int64_t cycles);",
    cuda_sources=CUDA_SOURCE,
    functions=["optimized_matmul"],
)
CYCLES = 120_000  # some 65 us beside some milliseconds


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.optimized_matmul(A, B, CYCLES)
