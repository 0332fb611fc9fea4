"""torch.bmm: cuBLAS's batched product.

One call does the whole work in float32. TF32 would be faster, but its rounding exceeds the tolerance.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A, B)
