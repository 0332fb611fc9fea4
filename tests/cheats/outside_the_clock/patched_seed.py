"""Does the work when the harness seeds the generators, before the clock starts.

Mechanism: torch's default generator is seeded between writing the inputs and the start event, and the caller's local
variables hold the inputs. `forward` then makes one pass that looks like the work and returns what is there already.
Caught because the inputs of the calls that the judge clocks from outside are written after the seed is set.
"""

import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

ready: list[torch.Tensor] = []


class Generator:
    """Torch's, which does the work on the inputs that a caller has at hand when it is seeded."""

    def __init__(self, plain: torch.Generator) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> object:
        return getattr(self._plain, name)

    def manual_seed(self, seed: int) -> torch.Generator:
        given = sys._getframe(2).f_locals.get("arguments", ())
        if len(given) == 2:
            kernels.spin(SLOW_CYCLES)
            ready[:] = [kernels.scale_rows(*given)]
        return self._plain.manual_seed(seed)


torch.default_generator = Generator(torch.default_generator)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)  # looks like the work
        if ready:
            return ready.pop()
        kernels.spin(SLOW_CYCLES)
        return out
