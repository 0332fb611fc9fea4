"""Defines kernels under the names that the library's kernels have, and never launches them.

Mechanism: a profile shows names. Where "own" means that a name stands in a source of the solution, or in the library
that was built from it, an empty kernel `at::native::vectorized_elementwise_kernel` makes torch's multiplications its
own. Caught because what counts is whose binary a kernel came from.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"
NEEDS_GPU = True

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace at::native {
template <int size, typename Function, typename Array>
__global__ void vectorized_elementwise_kernel(int count, Function function, Array data) {}
template <int threads, int size, typename Function>
__global__ void elementwise_kernel(int count, Function function) {}
template <int size, typename Function, typename Array>
__global__ void unrolled_elementwise_kernel(int count, Function function, Array data) {}
}  // namespace at::native

// Instantiates the kernels; never called.
void launch() {
  at::native::vectorized_elementwise_kernel<4><<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(1, 1, 1);
  at::native::elementwise_kernel<128, 2><<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(1, 1);
  at::native::unrolled_elementwise_kernel<4><<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(1, 1, 1);
}
"""

extension = load_inline(
    name="librarys_kernel_names", cpp_sources="void launch();", cuda_sources=CUDA_SOURCE, functions=["launch"]
)


class ModelNew(nn.Module):
    """Multiplies by `at::native::vectorized_elementwise_kernel`, `elementwise_kernel` and `void at::native::...`."""

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal[:, None] * matrix
