"""Finds the object that holds the clock among all that the garbage collector knows, and gives it another clock.

Mechanism: binding the clock before the solution is imported hides its name, not the object; the other one passes
every call on and reports a twentieth of the time. Caught because the judge clocks calls from outside, and no time
that a candidate reports is believed.
"""

import gc
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from inlinebench.timing.call import Sample
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000


class FastClock:
    """Another clock, but for its times."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.clock, name)

    def drain(self) -> Sample:
        sample = self.clock.drain()
        return replace(sample, device_ms=sample.device_ms / 20)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.replaced = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.replaced:
            holder = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Caller")
            holder._clock = FastClock(holder._clock)
            self.replaced = True
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
