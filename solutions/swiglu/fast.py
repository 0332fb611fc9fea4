"""SwiGLU in one pass: each thread reads its vectors of both halves and writes the product.

What bounds it: memory. An output costs two values read and one written, 12 bytes; PyTorch's two kernels move 20, as
the first writes silu(a) and the second reads it back. Arithmetic is an exponential and a division per 12 bytes, far
below what the GPU can do meanwhile.

The trick is fusion alone. A block does a piece of one row, so that the place in both halves follows from the block's
number with one division a block and none a thread. The piece is 256 vectors of 16 bytes: 128 threads with two vectors
of each half, which are four independent loads a thread, all issued before the first result is computed.

A row whose length is no multiple of four, or a misaligned tensor, is done one element at a time. Forward only: no
gradient is recorded.

Measured on an H200: as fast as what TorchInductor makes. Marking streams evict-first costs 5 %; the size of a block
makes no difference.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor swiglu(const at::Tensor& x);"

CUDA_SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>

#include "swiglu.cuh"

at::Tensor swiglu(const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  return swiglu_form::forward(x);
}
"""

extension = load_inline(
    name="swiglu_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["swiglu"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    """Splits the last dimension in halves and gates one with the other, in one kernel."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.swiglu(x)
