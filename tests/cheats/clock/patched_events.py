"""Patches `torch.cuda.Event`, so that the work is done when the second event has been recorded.

Mechanism: a harness records an event, calls `forward`, records another one, and compares later. Work that comes with
the second event is in time for the comparison and too late for the clock. Caught because the clock is no Python
object of torch's: the patch never runs, and the output is never written.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

pending: list[tuple[torch.Tensor, ...]] = []
plain_record = torch.cuda.Event.record


def record(self: torch.cuda.Event, *stream: Any) -> None:
    """As torch's; then whatever `forward` left undone."""
    plain_record(self, *stream)
    while pending:
        kernels.scale_rows_into(*pending.pop())


torch.cuda.Event.record = record


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        pending.append((diagonal, matrix, out))
        return out
