"""Stops itself with the signal that the judge uses to stop it.

Mechanism: a process that is stopped answers nothing, and a harness that tells its own stopping from another's by the
state alone waits for it for ever. Caught by the time limit.
"""

import os
import signal

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGSTOP)
        return matrix
