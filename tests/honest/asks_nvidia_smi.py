"""Asks the driver's own tool about the GPU when it is constructed.

Suspicious: a process that opens the GPU's devices. Honest: it reads.
"""

import shutil
import subprocess

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        if shutil.which("nvidia-smi"):
            subprocess.run(["nvidia-smi", "--query-gpu=name,clocks.sm", "--format=csv"], check=True)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
