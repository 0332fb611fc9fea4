"""Names everything that a CPU can't run, in comments, texts and branches that are not compiled; its answer is wrong.

Mechanism: without a GPU a source that uses inline PTX, graphs or CUB is skipped. Whoever finds these by searching the
text skips this one as well, though it runs anywhere. Caught because only code that is compiled counts.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
// #include <cub/cub.cuh>
/* asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {}, 0, 0;"); cudaGraphLaunch(graph, stream); */

#if 0
#include <cutlass/cutlass.h>
__device__ void ptx() { asm volatile("cp.async.bulk.tensor.2d [%0], [%1];" :: "r"(0), "l"(0)); }
#endif

const char* kNames = "asm volatile(\"mov.u32 %0, %laneid;\"); tex2D<float>(texture, 0, 0); cublasSgemm(handle)";

__global__ void zeros_kernel(float* out, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) out[index] = 0.f;
}

at::Tensor zeros(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  zeros_kernel<<<static_cast<unsigned>((x.numel() + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      out.mutable_data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="names_in_comments",
    cpp_sources="at::Tensor zeros(const at::Tensor& x);",
    cuda_sources=CUDA_SOURCE,
    functions=["zeros"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension.zeros(matrix)
