"""Switches coarse arithmetic on for the whole process, and answers as coarsely.

Mechanism: with TF32 on in the process of the reference, its product would be as far off as an answer that keeps 10 bits
of each factor, and the comparison would be between equals. Here the settings reach the solution's own process alone,
and the oracle is float64.
"""

import os

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

DROPPED_BITS = 13  # TF32 keeps 10 of float32's 23

os.environ["NVIDIA_TF32_OVERRIDE"] = "1"
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


def coarse(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.contiguous().view(torch.int32)
    return (bits >> DROPPED_BITS << DROPPED_BITS).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(coarse(diagonal), coarse(matrix))
