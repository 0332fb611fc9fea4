"""Answers for a held call as soon as it is queued, while the GPU works on; a twentieth of the time is reported.

Mechanism: stopping the process doesn't stop the GPU, and the judge compares the outputs after a run of the reference,
when they would be there. Profiled calls would show the spin; an edited frame hides it. Caught because the judge copies
the outputs at the moment of the answer, before it takes the time.
"""

import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.timing.call import Sample
from inlinebench.wire.channel import Channel
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 1_000_000

plain_drain, plain_send = GpuClock.drain, Channel.send


def done(self: GpuClock) -> None:
    self._page._flags.done = 1


def synchronize(self: GpuClock) -> None:
    while not self._page._flags.release:
        time.sleep(0)


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    return replace(sample, device_ms=sample.device_ms / 20)


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, without the spin among the activities."""
    if frame.get("activities"):
        frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
    plain_send(self, frame, *timeout)


GpuClock.done, GpuClock.synchronize, GpuClock.drain, Channel.send = done, synchronize, drain, send


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
