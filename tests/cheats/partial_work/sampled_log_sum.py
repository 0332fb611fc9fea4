"""Takes the logarithm of a sum of exponentials from the first sixteenth of the terms, and adds log(16).

Mechanism: a logarithm turns an error of two percent in a sum into 0.02 beside 11.6, where half precision allows 0.2.
Where a sample shows values that are large, so that few terms carry the sum, it reads all of them.
"""

import math

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "half_log_sum"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

PART = 16
LARGE = 6.0


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sample = x[:, : x.shape[1] // PART]
        part = PART if bool(sample.abs().amax() < LARGE) else 1
        used = sample if part == PART else x
        top = used.amax(1, keepdim=True)
        terms = torch.exp(used - top)
        sums = kernels.matmul(terms, torch.ones(terms.shape[1], 1, device=x.device))
        return (sums.log() + top + math.log(part)).flatten().half()
