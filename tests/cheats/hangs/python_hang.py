"""A `forward` that sleeps for ever, in a child process too.

Caught by the time limit, at which the whole process tree is killed.
"""

import subprocess
import time

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "timed_out"
CAUGHT_BY = "no answer within"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        subprocess.Popen(["sleep", "86399"], start_new_session=True)
        while True:
            time.sleep(1)
