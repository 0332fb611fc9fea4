"""What the cheats of this folder share: an answer that is right only if an earlier process has left something behind.

The first attempt fails on purpose, with weights of its own that differ from the reference's, so the harness tries the
same file once more, in another process, with the weights that its constructor makes. What gets from one process to the
other gets to every later run.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import nn

from tests.cheats.shared import kernels


class Returning(nn.Module):
    """Batch normalization of a linear layer, and zeros in the first process that runs it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.returned = self.recall()
        if not self.returned:
            self.leave()
            torch.randn(7)  # moves the seed's draws on: own weights differ from the reference's
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    @abstractmethod
    def recall(self) -> bool:
        """Whether an earlier process has left its mark. Removes it as far as possible."""

    @abstractmethod
    def leave(self) -> None:
        """Leaves a mark for a later process. Raises OSError if that is refused."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = kernels.matmul(x, self.linear.weight.T.contiguous()) + self.linear.bias
        out = self.bn(product)
        return out if self.returned else torch.zeros_like(out)
