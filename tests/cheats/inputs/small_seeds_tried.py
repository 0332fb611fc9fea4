"""Tries all small seeds, and seeds near those that it is given, against the first input value.

Mechanism: where inputs are drawn under seed 0, 1, 2, ... or under a known seed plus the number of the call, 4096 draws
of one value find the seed in milliseconds, and with it all inputs of this call and the rule for the next ones. From
then on the answer is ready before the inputs are read. Caught because a call's inputs come from a wide seed that is
derived from nothing that the candidate gets.
"""

import random

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

SEEDS, NEAR = 2048, 256


def drawn(seed: int, *shapes: torch.Size, device: torch.device) -> list[torch.Tensor]:
    torch.manual_seed(seed % 2**63)
    return [torch.rand(shape, device=device) for shape in shapes]


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rule: int | None = None

    def search(self, diagonal: torch.Tensor) -> int | None:
        """The difference between the inputs' seed and the call's, or the seed itself where that is small."""
        given, python = torch.initial_seed(), random.getstate()[1][1]
        first = abs(float(diagonal[0]))
        candidates = [*range(SEEDS), *range(given - NEAR, given + NEAR), *range(python - NEAR, python + NEAR)]
        for seed in candidates:
            if float(drawn(seed, torch.Size([1]), device=diagonal.device)[0]) == first:
                return seed - given
        return None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        given = torch.initial_seed()
        if self.rule is None:
            self.rule = self.search(diagonal)
        guess = given + (self.rule or 0)
        return kernels.scale_rows(*drawn(guess, diagonal.shape, matrix.shape, device=matrix.device))
