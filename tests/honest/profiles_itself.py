"""Profiles its kernel by torch.profiler in the constructor, to choose between two of them.

Suspicious: it has used the profiler before the harness does, and a process has one. Honest: its profile has ended when
the first call comes.
"""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

SIZE = 64


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        on_gpu = torch.cuda.is_available() and torch.version.cuda is not None
        device = torch.device("cuda" if on_gpu else "cpu")
        diagonal, matrix = torch.ones(SIZE, device=device), torch.ones(SIZE, SIZE, device=device)
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        with profile(activities=activities) as seen:
            kernels.scale_rows(diagonal, matrix)
            matrix * diagonal[:, None]
            if on_gpu:
                torch.cuda.synchronize()
        assert seen.key_averages()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
