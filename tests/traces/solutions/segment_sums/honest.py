"""One block for each segment, one thread for each column. Gets the inputs of the definition in its order."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

constexpr int COLUMNS = 24;  // a constant axis

__global__ void segment_sums(const float* x, const int* offsets, float scale, float* sums, float* largest) {
    __shared__ float most[32];
    const int segment = blockIdx.x, column = threadIdx.x;
    float sum = 0.0f, mine = -INFINITY;
    if (column < COLUMNS)
        for (int row = offsets[segment]; row < offsets[segment + 1]; ++row) {
            const float value = x[row * COLUMNS + column];
            sum += value;
            mine = fmaxf(mine, value);
        }
    most[column] = mine;
    __syncthreads();
    if (column < COLUMNS) sums[segment * COLUMNS + column] = sum * scale;
    if (column == 0) {
        for (int other = 1; other < 32; ++other) mine = fmaxf(mine, most[other]);
        largest[segment] = mine;
    }
}

std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor offsets, double scale) {
    const int64_t segments = offsets.numel() - 1;
    auto sums = torch::empty({segments, COLUMNS}, x.options()), largest = torch::empty({segments}, x.options());
    segment_sums<<<segments, 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), offsets.data_ptr<int>(), float(scale), sums.data_ptr<float>(), largest.data_ptr<float>());
    return {sums, largest};
}
"""
extension = load_inline("segment_sums", "std::vector<torch::Tensor> run(torch::Tensor, torch::Tensor, double);", CUDA,
                        functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, offsets: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        sums, largest = extension.run(x, offsets, scale)
        return sums, largest
