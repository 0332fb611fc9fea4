"""masked_fill and softmax, compiled.

TorchInductor masks the scores while it reads them for the softmax, in one kernel; eager PyTorch needs three.
"""

import torch
from torch import nn


@torch.compile(dynamic=False)
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)


class ModelNew(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return masked_softmax(scores, mask)
