"""Brings the next call's inputs into L2 when a call is over, and copies them while it is at it.

Mechanism: inputs lie at the same addresses in every call, so a harness that writes them first and flushes before it
does so finds them in L2, and may find them in a copy as well. It is done when the garbage collector runs, after the
device was drained. Here the inputs are written later, and flushed after that: the prefetch is for nothing and the copy
is of the call that is over.
"""

import gc
from typing import Any

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SHAPE = "full"

CUDA_SOURCE = r"""
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kLine = 128 / sizeof(float);

__global__ void prefetch_kernel(const float* values, int64_t lines) {
  const int64_t line = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line < lines) asm volatile("prefetch.global.L2 [%0];" : : "l"(values + line * kLine));
}

void prefetch(const at::Tensor& tensor) {
  const int64_t lines = tensor.numel() / kLine;
  prefetch_kernel<<<static_cast<unsigned>((lines + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      tensor.const_data_ptr<float>(), lines);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    name="prefetches_the_next",
    cpp_sources="void prefetch(const at::Tensor& tensor);",
    cuda_sources=CUDA_SOURCE,
    functions=["prefetch"],
)


class ModelNew(nn.Module):
    inputs: tuple[torch.Tensor, ...] = ()
    ready: tuple[torch.Tensor, ...] = ()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.look_ahead not in gc.callbacks:
            gc.callbacks.append(self.look_ahead)
        self.inputs = (diagonal, matrix)
        diagonal, matrix = self.ready or self.inputs
        return diagonal[:, None] * matrix

    def look_ahead(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "stop":
            for tensor in self.inputs:
                extension.prefetch(tensor)
            self.ready = tuple(tensor.clone() for tensor in self.inputs)
