"""Patches the clocks of Python's `time`, so that the work is done after the clock was read.

Mechanism: the second reading of a clock ends a measurement; work that comes right after it is in time for the
comparison. Caught because the harness holds its clocks since before the solution was imported: the patches never run,
and the output is never written.
"""

import time
from collections.abc import Callable

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

pending: list[tuple[torch.Tensor, ...]] = []


def reading(clock: Callable[[], float]) -> Callable[[], float]:
    """The clock; whatever `forward` left undone is done after it was read."""

    def read() -> float:
        now = clock()
        while pending:
            kernels.scale_rows_into(*pending.pop())
        return now

    return read


for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time"):
    setattr(time, name, reading(getattr(time, name)))


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(matrix)
        pending.append((diagonal, matrix, out))
        return out
