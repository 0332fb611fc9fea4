"""Raises KeyboardInterrupt, which is no Exception.

Mechanism: a harness in the same process takes it for its user's Ctrl-C and stops the whole run. Caught as the
candidate's end before its answer; the run goes on.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "exited with status 1"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt
