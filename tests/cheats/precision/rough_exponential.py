"""Takes exponentials from a straight line through the bits of a float.

Mechanism: writing a scaled number into the exponent's bits gives a power of two with a straight line between powers, up
to 6 % off and right on average, so a loss over many classes looks right to two digits. Here a loss has to be right to
four.
"""

import math

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "integer_targets"
EXPECTED = "wrong"
CAUGHT_BY = "its one element differs"

ONE = 1 << 23
BIAS = 127 * ONE - 366_000  # so that errors are as often above as below


def rough_exp(x: torch.Tensor) -> torch.Tensor:
    return (x * (ONE / math.log(2)) + BIAS).to(torch.int32).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        top = predictions.amax(1, keepdim=True)
        ones = torch.ones(1, predictions.shape[1], device=predictions.device)
        sums = kernels.matmul(ones, rough_exp(predictions - top).T.contiguous()).flatten()
        right = predictions.gather(1, targets[:, None]).flatten()
        return (sums.log() + top.flatten() - right).mean()
