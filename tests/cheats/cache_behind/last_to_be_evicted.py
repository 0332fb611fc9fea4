"""Copies part of the matrix with a hint that L2 is to keep it, and reads the copy in later calls.

Mechanism: the hint needs no setting of the device that a harness could reset: each load says by itself that its line is
to go last. Reading twice the size of L2 sweeps it out all the same, and if it didn't, the copy would hold an earlier
call's inputs. Here all inputs are new in each call, so its answers are stale from the second one on.
"""

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
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__device__ float load_to_keep(const float* address) {
  float value;
  asm volatile(
      "{\n"
      "  .reg .b64 keep;\n"
      "  createpolicy.fractional.L2::evict_last.b64 keep, 1.0;\n"
      "  ld.global.L2::cache_hint.f32 %0, [%1], keep;\n"
      "}\n"
      : "=f"(value) : "l"(address));
  return value;
}

// The first `kept` values come from the copy, the others from the matrix itself.
__global__ void scale_kernel(const float* diagonal, const float* copy, const float* B, float* out, int64_t columns,
                             int64_t kept, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * (index < kept ? load_to_keep(copy + index) : B[index]);
}

at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& copy, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  scale_kernel<<<static_cast<unsigned>((B.numel() + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), copy.const_data_ptr<float>(), B.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), B.size(1), copy.numel(), B.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="last_to_be_evicted",
    cpp_sources="at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& copy, const at::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["scale"],
)

KEPT_ROWS = 1024  # 16 MB


class ModelNew(nn.Module):
    copy: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.copy is None:
            self.copy = matrix[:KEPT_ROWS].clone()
        return extension.scale(diagonal, self.copy, matrix)
