"""_addmm_activation: cuBLASLt's product with bias and GELU in its epilogue.

The product is written once and not read again for the GELU. On a GPU that is the approximation by tanh, whose error is
far below the tolerance of bfloat16.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch._addmm_activation(self.linear.bias, x, self.linear.weight.t(), use_gelu=True)
