"""Handles signals, has its faults dumped, and says something at its exit.

Suspicious: it listens to signals, with which the harness stops and ends processes. Honest: none of them is one that the
harness sends, and a handler that is there changes nothing.
"""

import atexit
import faulthandler
import signal
import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

faulthandler.enable()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
atexit.register(print, "the end")


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
