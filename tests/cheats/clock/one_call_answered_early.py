"""Lets only batches of one call be queued in advance, and says at once that these are done.

Mechanism: a `forward` that waits for the device makes the blocking kernel time out, and then the judge tries fewer
calls. For a single one the flag is set early and the reply is sent while the GPU still works, so the judge sees no more
than the time of a reply. Caught because the outputs are copied right then, and are not complete.
"""

import sys
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
SLOW_CYCLES = 80_000_000

single: list[bool] = []
plain_done, plain_drain, plain_send = GpuClock.done, GpuClock.drain, Channel.send


def done(self: GpuClock) -> None:
    if single:
        self._page._flags.done = 1
    else:
        plain_done(self)


def drain(self: GpuClock) -> Sample:
    if single:
        single.clear()
        while not self._page._flags.release:
            time.sleep(0)
        return Sample(0.1, 0.0, blocked=True)
    sample = plain_drain(self)
    return replace(sample, device_ms=sample.device_ms / 300)


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, without the spin among the activities."""
    if frame.get("activities"):
        frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
    plain_send(self, frame, *timeout)


GpuClock.done, GpuClock.drain, Channel.send = done, drain, send


def calls_in_batch() -> int:
    """The number of calls of the batch that this call is part of, or 0."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "held_batch":
            return len(frame.f_locals["works"])
        frame = frame.f_back
    return 0


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        calls = calls_in_batch()
        single[:] = [True] if calls == 1 else []
        if calls > 1:
            torch.cuda.synchronize()
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
