"""tril(A @ B) of lower triangular matrices on tensor cores, each float32 as two halves, without the empty blocks.

What bounds it: the tensor cores, and the longest sum. A sixth of the products of full matrices are not with zeros, 23
GFLOP at full size. In tiles of 128 x 128 it is more, about 25, and three products of halves make that 76 GFLOP, 0.09 ms
at the 810 TFLOP/s that an H100's power allows. The tile in the corner has all 4096 steps of K, 0.07 ms alone. What
comes before is bound by memory: 0.2 GB, 0.06 ms.

A tile with rows up to i and columns from j has products for K from j to i only: none above the diagonal, where it
writes zeros. Tiles go diagonal by diagonal from the corner on, because that is the order of the lengths of their sums:
short ones fill up what multiprocessors have left. Of A's rows and B's columns only what tiles read is split, in
`solutions/common/product.cuh`, where the product is as well. What lies above the diagonal is not looked at, apart from
the tiles that it crosses, where it must be zero.

Measured on an H200, where cuBLAS takes 2.70 ms for full matrices: 0.235 ms, of which the rows take 0.022 ms, the
columns 0.048 ms and the product 0.166 ms. The product takes 0.190 ms if tiles go row by row, 0.176 ms in tiles of
256 x 128 and 0.183 ms in tiles of 256 x 192, which a pair of blocks share.

Any size works. An infinity in A or B may give NaN where the exact result is infinite; a NaN spreads. Forward only: no
gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor matmul_lower_triangular(const at::Tensor& A, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include "product.cuh"

namespace {

struct BelowDiagonal {
  __device__ __forceinline__ float operator()(float value, int row, int column) const {
    return column <= row ? value : 0.0f;
  }
};

}  // namespace

at::Tensor matmul_lower_triangular(const at::Tensor& A, const at::Tensor& B) {
  check_float(A, "matmul_lower_triangular: A", 2, A.device());
  check_float(B, "matmul_lower_triangular: B", 2, A.device());
  TORCH_CHECK(
      A.size(0) == A.size(1) && A.sizes() == B.sizes(),
      "matmul_lower_triangular: A and B must be square and alike, but have shapes ", A.sizes(), " and ", B.sizes());
  const c10::cuda::CUDAGuard guard(A.device());
  at::Tensor out = at::empty(A.sizes(), A.options());
  if (out.numel() == 0) {
    return out;
  }
  const split::Operand left = split::rows_of(A, true);
  const split::Operand right = split::columns_of(B, true);
  split::multiply<true>(left, right, split::Write<BelowDiagonal>{{out, left, right}, {}});
  return out;
}
"""


class ModelNew(nn.Module):
    """Multiplies two lower triangular matrices on tensor cores."""

    def __init__(self) -> None:
        super().__init__()
        extension = load_inline(
            name="matmul_lower_triangular_fast",
            cpp_sources=CPP_SOURCE,
            cuda_sources=CUDA_SOURCE,
            functions=["matmul_lower_triangular"],
            extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
            extra_cuda_cflags=[
                "-O3",
                "-gencode=arch=compute_80,code=sm_80",
                "-gencode=arch=compute_80,code=compute_80",
                "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
            ],
        )
        self.matmul_lower_triangular = extension.matmul_lower_triangular

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return self.matmul_lower_triangular(A, B)
