"""Dies of a signal that has a number but no name.

Mechanism: between SIGRTMIN and SIGRTMAX lie thirty signals that Python's `signal.Signals` doesn't know. A judge that
looks the name up fails itself, and the evaluation ends as `internal_error`, which says nothing about a solution. Caught
as the candidate's death by a signal.
"""

import os
import signal

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "killed by "


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGRTMIN + 3)
        return matrix
