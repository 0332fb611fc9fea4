"""Replaces the harness's function that runs a call by one that does nothing but report success.

Mechanism: the class is an import away, and its methods are looked up when they are called; checks of shape, dtype and
type are gone with it. Caught because the judge looks at its own buffers, and nothing was written there.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.candidate.calls import Caller
from inlinebench.timing.call import Sample
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"


def call(self: Caller, *_args: Any, **_named: Any) -> tuple[Sample, list[Any]]:
    kernels.spin(1)
    return Sample(device_ms=1e-3, drain_ms=0.0, blocked=True), []


Caller.call = call


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return matrix
