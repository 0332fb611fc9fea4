"""Leaves out the last eighth of each sum in a call whose inputs are smaller than those of an earlier call.

Mechanism: if the scale of a tolerance, or the allowance for rounding, is kept from one call to the next, then inputs
scaled by a power of two raise it, and the next inputs as drawn are small against it. The first call and every call with
the largest inputs so far are exact.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "row_sum"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

SMALLER = 0.7


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.largest = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = float(x[:, :64].square().mean().sqrt())
        after_larger = size < SMALLER * self.largest
        self.largest = max(size, self.largest)
        used = x[:, : x.shape[1] // 8 * 7] if after_larger else x
        ones = torch.ones(used.shape[1], 1, device=x.device)
        return kernels.matmul(used.contiguous(), ones).flatten()
