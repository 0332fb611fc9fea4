"""As `persisting_lines`, and does not reset the lines that persist.

Mechanism: a held call's sweep runs in the judge's process, so lines that the solution's process has set aside would
outlast it, and the reset in the clock is a function that a solution can replace. Caught because what lies there is an
earlier call's. Lines of weights, which do not change, may persist.
"""

import torch
from torch import nn

from tests.cheats.cache_behind.persisting_lines import extension
from tests.cheats.holding import GpuClock

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SHAPE = "full"


def do_not_flush(self: GpuClock) -> None:
    self._blocking_wanted = False


GpuClock.flush = do_not_flush


class ModelNew(nn.Module):
    copy: torch.Tensor | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.copy is None:
            self.copy = matrix.clone()
            extension.keep_in_cache(self.copy)
        return extension.scale(diagonal, self.copy)
