"""Does the work when the harness seeds the generators, before the clock starts.

Mechanism: `torch.manual_seed` is called between writing the inputs and the start event, and the caller's local
variables hold the inputs. `forward` then makes one pass that looks like the work and returns what is there already.
Caught because the judge clocks calls from outside, with all that belongs to them; a profiler shows the kernel before
the start.
"""

import sys

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
plain_seed = torch.manual_seed


def manual_seed(seed: int) -> torch.Generator:
    """As torch's, after the work on the inputs that a caller has at hand."""
    given = sys._getframe(2).f_locals.get("arguments", ())
    if len(given) == 2:
        kernels.spin(SLOW_CYCLES)
        ready[:] = [kernels.scale_rows(*given)]
    return plain_seed(seed)


torch.manual_seed = manual_seed


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)  # looks like the work
        if ready:
            return ready.pop()
        kernels.spin(SLOW_CYCLES)
        return out
