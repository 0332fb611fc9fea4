"""Takes the mean of squared differences from every sixteenth element.

Mechanism: a mean of a million terms is known to a third of a percent from a sixteenth of them, and half precision
allows one. Negated inputs, inputs with random signs and inputs scaled by powers of two have means of squares that a
sample gives just as well. With a few large values the sample is off by more than the tolerance in every third call, so
only a run with many calls finds it.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "half_loss"
EXPECTED = "wrong"
CAUGHT_BY = "its one element differs"
NEEDS_GPU = True
SHAPE = "full"

STEP = 16


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        distance = (predictions[::STEP] - targets[::STEP])[None]
        total = kernels.matmul(distance, distance.T.contiguous())
        return (total / distance.numel()).half().reshape(())
