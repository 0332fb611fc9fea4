"""One thread for each element of the output."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void swap_halves(const at::BFloat16* x, const int64_t* indices, at::BFloat16* swapped, int64_t count) {
    const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (element < count) swapped[element] = x[indices[element / 32] * 32 + (element + 16) % 32];
}

torch::Tensor run(torch::Tensor x, torch::Tensor indices) {
    auto swapped = torch::empty({indices.numel(), 32}, x.options());
    const int64_t count = swapped.numel();
    swap_halves<<<(count + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<at::BFloat16>(), indices.data_ptr<int64_t>(), swapped.data_ptr<at::BFloat16>(), count);
    return swapped;
}
"""
extension = load_inline("swap_halves", "torch::Tensor run(torch::Tensor, torch::Tensor);", CUDA, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return extension.run(x, indices)
