"""Returns an empty tensor at once; a thread fills it a little later.

Mechanism: nothing is launched between the time stamps, and a harness that compares after its timing loop finds
outputs that are right by then. Caught because the output is copied right after `forward`.
"""

import threading
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
LATER_S = 0.05


def fill(diagonal: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> None:
    time.sleep(LATER_S)
    kernels.scale_rows_into(diagonal, matrix, out)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        threading.Thread(target=fill, args=(diagonal, matrix, out), daemon=True).start()
        return out
