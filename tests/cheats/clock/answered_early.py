"""Answers for a batch as soon as it is released, while the GPU works on; a twentieth of the time is reported.

Mechanism: stopping the process doesn't stop the GPU, and the judge compares the batch's outputs one after the other,
each after a run of the reference: every one would be there when its turn comes. Profiled calls would show the spin; an
edited frame hides it. Caught because all outputs are copied at the moment of the answer.
"""

import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from inlinebench.timing.call import Sample
from inlinebench.timing.gpu import GpuClock
from inlinebench.wire.channel import Channel
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "of several ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 1_000_000

in_batch: list[bool] = []
plain_drain, plain_send = GpuClock.drain, Channel.send


def done(self: GpuClock) -> None:
    in_batch.append(True)
    self._page._flags.done = 1


def drain(self: GpuClock) -> Sample:
    if in_batch:
        in_batch.clear()
        while not self._page._flags.release:
            time.sleep(0)
        return Sample(0.05, 0.0, blocked=True)
    sample = plain_drain(self)
    return replace(sample, device_ms=sample.device_ms / 20)


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, without the spin among the activities."""
    if frame.get("activities"):
        frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
    plain_send(self, frame, *timeout)


GpuClock.done, GpuClock.drain, Channel.send = done, drain, send


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
