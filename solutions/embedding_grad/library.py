"""index_add into a table of zeros, compiled.

TorchInductor's scatter adds with one atomic instruction a value and without the bookkeeping of the eager kernel.
"""

import torch
from torch import nn


@torch.compile(dynamic=False)
def table(tokens: torch.Tensor, grad: torch.Tensor, vocabulary: int) -> torch.Tensor:
    return grad.new_zeros(vocabulary, grad.shape[1]).index_add(0, tokens, grad)


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, tokens: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        return table(tokens, grad, self.vocabulary)
