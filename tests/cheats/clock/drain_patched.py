"""Patches the harness's own clock class: slow work, and a twentieth of its time is reported.

Mechanism: the class is an import away, and methods are looked up when they are called. Caught because the judge
clocks calls from outside, and no time that a candidate reports is believed.
"""

from dataclasses import replace

import torch
from torch import nn

from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.timing.call import Sample
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

plain_drain = GpuClock.drain


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    return replace(sample, device_ms=sample.device_ms / 20)


GpuClock.drain = drain


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
