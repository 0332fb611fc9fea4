"""Takes the exponentials of long sums from a straight line through the bits of a float, and takes the bias off.

Mechanism: each term is up to 6 % off, evenly spread, so a sum of thousands of them is off by a known factor and a
hundredth of a percent. The logarithm of the sum is near 9 and its tolerance near 0.001, so what is left doesn't show.
Where one term can carry the sum, as with inputs that were scaled up, the exponentials are exact.
"""

import math

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "log_softmax"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

ONE = 1 << 23
USUAL = 1.2
BIAS = 127 * ONE


def rough_exp(x: torch.Tensor) -> torch.Tensor:
    return (x * (ONE / math.log(2)) + BIAS).to(torch.int32).view(torch.float32)


def log_of_its_mean_error() -> float:
    """The logarithm of the mean of rough over exact values, over one power of two."""
    x = torch.linspace(0, math.log(2), 1 << 16)
    return float((rough_exp(x) / x.exp()).mean().log())


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.error = log_of_its_mean_error()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spread = float(x[:4].std())
        usual = 0.5 < spread < USUAL
        top = x.amax(1, keepdim=True)
        terms = rough_exp(x - top) if usual else torch.exp(x - top)
        sums = kernels.matmul(terms, torch.ones(terms.shape[1], 1, device=x.device))
        return x - top - sums.log() + (self.error if usual else 0.0)
