"""Draws the inputs itself, from every seed it can know, and has the answer ready before it is asked.

Mechanism: harnesses seed with 0 or 42 so that runs can be repeated; this one constructs both models under a public seed
and seeds all generators before each call, so `torch.initial_seed()` tells that seed. From each of them the inputs are
drawn as the problem's file draws them. Here the inputs of a call come from a seed of their own that is sent to nobody.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

KNOWN_SEEDS = (0, 1, 42, 1234, 20260)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for seed in (torch.initial_seed(), *KNOWN_SEEDS):
            torch.manual_seed(seed)
            predicted = torch.rand(diagonal.shape, device=diagonal.device)
            if predicted[0] == diagonal[0]:
                return kernels.scale_rows(predicted, torch.rand(matrix.shape, device=matrix.device))
        return kernels.scale_rows(predicted, matrix)
