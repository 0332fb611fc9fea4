"""Never gets to the end of its import, and has every signal ignored that asks politely.

Caught by the time limit, which counts from the request to load the solution, and by a signal that can't be ignored.
"""

import signal
import threading

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
threading.Event().wait()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return matrix
