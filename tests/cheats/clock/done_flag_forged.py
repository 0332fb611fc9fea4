"""Sets the flag that tells the judge of a batch's end by itself, and reports six tenths of each time.

Mechanism: the page of flags belongs to the candidate as much as to the judge, and with the flag up early no work seems
to be left. Caught because the answer counts as well, less what it takes to send one.
"""

from dataclasses import replace

import torch
from torch import nn

from inlinebench.timing.call import Sample
from inlinebench.timing.gpu import GpuClock
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"

plain_drain = GpuClock.drain


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    return replace(sample, device_ms=0.6 * sample.device_ms)


def done(self: GpuClock) -> None:
    self._page._flags.done = 1


GpuClock.drain, GpuClock.done = drain, done


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
