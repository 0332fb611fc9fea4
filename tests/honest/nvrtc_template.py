"""Compiles an instance of a template by NVRTC, in a namespace, and launches it under its lowered name.

Suspicious: the name that a profile shows stands nowhere in the file, neither mangled nor demangled. Honest: it is the
name of an instance of the file's template.
"""

import torch
from torch import nn

from tests.honest.shared_nvrtc import THREADS, RawKernel

PROBLEM = "matmul_diag"
NEEDS_GPU = True

SOURCE = r"""
namespace rows {
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <typename Scalar, typename Operation, int per_thread>
__global__ void combine(const Scalar* diagonal, const Scalar* matrix, Scalar* out, long long columns, long long count) {
  const long long begin = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * per_thread;
  for (long long index = begin; index < begin + per_thread && index < count; ++index) {
    out[index] = Operation()(diagonal[index / columns], matrix[index]);
  }
}
}  // namespace rows
"""
PER_THREAD = 2


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.combine = RawKernel(SOURCE, f"rows::combine<float, rows::Product, {PER_THREAD}>")

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out, count = torch.empty_like(matrix), matrix.numel()
        blocks = -(-count // (THREADS * PER_THREAD))
        self.combine((blocks,), (THREADS,), (diagonal, matrix, out, matrix.shape[1], count))
        return out
