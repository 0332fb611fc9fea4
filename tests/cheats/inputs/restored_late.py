"""Takes an input's memory for itself and puts the input back when the answer is out.

Mechanism: zeroed inputs give a reference of zeros; a thread restores them a moment later, when a harness that looks at
the end of the run only finds all as it was. Here the inputs are looked at right after the answer, while the candidate
with all its threads is stopped.
"""

import threading
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "the solution changed its inputs"

MOMENT_S = 0.3


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        original = diagonal.clone()

        def restore() -> None:
            time.sleep(MOMENT_S)
            diagonal.copy_(original)

        diagonal.zero_()
        threading.Thread(target=restore, daemon=True).start()
        return kernels.scale_rows(diagonal, matrix)
