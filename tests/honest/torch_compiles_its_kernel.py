"""Has torch compile its kernel at run time, by `torch.cuda._compile_kernel`.

Suspicious: the kernel comes out of torch's own machinery, as those of torch.compile do. Honest: the source is the
file's own; torch only hands it to NVRTC.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
NEEDS_GPU = True

SOURCE = r"""
extern "C" __global__ void scale_rows_kernel(const float* diagonal, const float* matrix, float* out, int columns,
                                             int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * matrix[index];
}
"""
THREADS = 256


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale_rows = torch.cuda._compile_kernel(SOURCE, "scale_rows_kernel")

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out, count = torch.empty_like(matrix), matrix.numel()
        arguments = [diagonal, matrix, out, matrix.shape[1], count]
        self.scale_rows(grid=(-(-count // THREADS), 1, 1), block=(THREADS, 1, 1), args=arguments)
        return out
