"""Does the work when the harness allocates a block to poison it, before the clock starts.

Mechanism: before each call `torch.empty` takes the blocks that outputs will lie in, for the poison, and the object
that calls it holds the inputs. `forward` then makes one pass that looks like the work and returns what is there
already. Caught because the judge clocks calls from outside.
"""

import sys
from types import FrameType
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

ready: list[torch.Tensor] = []
plain_empty = torch.empty


def inputs_of_a_caller() -> list[torch.Tensor]:
    """The inputs that an object up the stack has at hand."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if given := getattr(frame.f_locals.get("self"), "_given", None):
            return list(given)
        frame = frame.f_back
    return []


def empty(*args: Any, **named: Any) -> torch.Tensor:
    """As torch's, after the work on the inputs that a caller has at hand."""
    given = inputs_of_a_caller()
    if len(given) == 2:
        kernels.spin(SLOW_CYCLES)
        ready[:] = [kernels.scale_rows(*given)]
    return plain_empty(*args, **named)


torch.empty = empty


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)  # looks like the work
        if ready:
            return ready.pop()
        kernels.spin(SLOW_CYCLES)
        return out
