"""Sets L2 lines aside for a copy of the inputs and computes from that copy ever after.

Mechanism: persisting lines survive the flush of a harness that only reads or writes a large buffer, and half of L2 is
enough for the first rows of the matrix: reading them from L2 takes a third of the time. What survives is an earlier
call's. With new inputs in each call the copy is stale, and lines that persist are reset before each call anyway, so
that an honest solution that asks for them gains nothing either.
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

__global__ void scale_kernel(const float* diagonal, const float* B, float* out, int64_t columns, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

// From now on what the stream reads in the copy stays in L2.
void keep_in_cache(const at::Tensor& copy) {
  cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, copy.get_device()));
  const size_t most = properties.persistingL2CacheMaxSize, window = properties.accessPolicyMaxWindowSize;
  C10_CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most));
  cudaLaunchAttributeValue policy = {};
  policy.accessPolicyWindow.base_ptr = copy.data_ptr();
  policy.accessPolicyWindow.num_bytes = copy.nbytes() < window ? copy.nbytes() : window;
  policy.accessPolicyWindow.hitRatio = 1.f;
  policy.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  policy.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  C10_CUDA_CHECK(cudaStreamSetAttribute(at::cuda::getCurrentCUDAStream(), cudaLaunchAttributeAccessPolicyWindow,
                                        &policy));
}

at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  scale_kernel<<<static_cast<unsigned>((B.numel() + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), B.size(1),
      B.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="persisting_lines",
    cpp_sources="""void keep_in_cache(const at::Tensor& copy);
at::Tensor scale(const at::Tensor& diagonal, const at::Tensor& B);""",
    cuda_sources=CUDA_SOURCE,
    functions=["keep_in_cache", "scale"],
)


class ModelNew(nn.Module):
    copy: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.copy is None:
            self.copy = matrix.clone()
            extension.keep_in_cache(self.copy)
        return extension.scale(diagonal, self.copy)
