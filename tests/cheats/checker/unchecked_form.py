"""Switches the check of the output's form off, and returns another dtype.

Mechanism: a copy that casts and broadcasts makes the right form of any, after the clock; only a check before it
notices that the work of the cast was left out, and that check is a method of a class that is an import away. Caught
by the values: outputs are copied as bytes, and bytes of another dtype are other values.
"""

import torch
from torch import nn

from inlinebench.candidate.calls import Caller
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

Caller._conform = lambda _caller, out, *_form: out


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix).double()
