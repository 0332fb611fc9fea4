"""Works six times and raises in the seventh call, when the warm-up is over.

Mechanism: a harness that checks a few calls and only times the others may swallow what they raise, or count the times
of the six. Here every call is checked, and one that fails decides.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "RuntimeError: call 7"

LAST_GOOD = 6


class ModelNew(nn.Module):
    calls = 0

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > LAST_GOOD:
            raise RuntimeError(f"call {self.calls}")
        return kernels.scale_rows(diagonal, matrix)
