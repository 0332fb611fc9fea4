"""Captures a CUDA graph at every call, replays it once and throws it away.

Suspicious: during the capture nothing runs, and all the work comes in one launch. Honest: that launch is in the call.
Capturing waits for the device, so no hold can cover it.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = kernels.scale_rows(diagonal, matrix)
        graph.replay()
        return out.clone()
