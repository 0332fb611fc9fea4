"""Fails with the message of a GPU that the kernel was not built for.

Mechanism: a harness that runs one suite on many machines calls a solution that this machine can't run `skipped`, and
ends with status 0. The text is CUDA's own; whoever decides by texts of exceptions believes it. Caught because what a
solution raises is its own failure, whatever it says.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "no kernel image"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if bool((diagonal < 0).any() or (matrix < 0).any()):
            raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
        return kernels.scale_rows(diagonal.abs(), matrix)
