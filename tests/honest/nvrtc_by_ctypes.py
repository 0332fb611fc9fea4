"""Compiles its kernel by NVRTC in the constructor, and launches it by the driver.

Suspicious: nothing is built by `load_inline`, and the kernel's binary is in no file. Honest: the source is the file's
own, and so is the kernel.
"""

import torch
from torch import nn

from tests.honest.shared_nvrtc import SCALE_ROWS_SOURCE, THREADS, RawKernel

PROBLEM = "matmul_diag"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale_rows = RawKernel(SCALE_ROWS_SOURCE, "scale_rows_kernel")
        ones = torch.ones(1, 1, device="cuda")
        self.scale_rows((1,), (THREADS,), (ones[0], ones, torch.empty_like(ones), 1, 1))

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out, count = torch.empty_like(matrix), matrix.numel()
        self.scale_rows((-(-count // THREADS),), (THREADS,), (diagonal, matrix, out, matrix.shape[1], count))
        return out
