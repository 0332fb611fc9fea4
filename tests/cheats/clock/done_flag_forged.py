"""Sets the flag that tells the judge of a held call's end by itself, and reports a twentieth of each time.

Mechanism: the page of flags belongs to the candidate as much as to the judge, and with the flag up early no work seems
to be left. Profiled calls would show the spin; an edited frame hides it. Caught because the flag only tells the judge
when to copy the outputs: those of an unfinished call are missing.
"""

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
CAUGHT_BY = "a held call ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

plain_drain, plain_send = GpuClock.drain, Channel.send


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    return replace(sample, device_ms=sample.device_ms / 20)


def done(self: GpuClock) -> None:
    self._page._flags.done = 1


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, without the spin among the activities."""
    if frame.get("activities"):
        frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
    plain_send(self, frame, *timeout)


GpuClock.drain, GpuClock.done, Channel.send = drain, done, send


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
