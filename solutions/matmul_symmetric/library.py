"""torch.mm: cuBLAS's product in float32.

PyTorch offers no product for symmetric matrices (cuBLAS's symm), and TF32's rounding exceeds the tolerance.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.mm(A, B)
