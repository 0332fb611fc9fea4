"""Leaves out what the harness queues beside a held call, and reports a tenth of each time.

Mechanism: what a held call costs apart from the solution is subtracted from its time. The sweep of L2 is not made, and
the outputs are written to the judge's buffers at once, so that nothing would have to be copied. Caught because nothing
is subtracted that a candidate could leave out: the judge sweeps and copies by itself.
"""

import sys
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.timing.call import Sample
from inlinebench.wire.arena import view
from inlinebench.wire.channel import Channel
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 400_000

plain_drain, plain_copy, plain_send = GpuClock.drain, GpuClock.copy, Channel.send


def drain(self: GpuClock) -> Sample:
    sample = plain_drain(self)
    return replace(sample, device_ms=0.1 * sample.device_ms)


def copy(self: GpuClock, target: int, source: int, size: int) -> None:
    if target != source:
        plain_copy(self, target, source, size)


def sweep(self: GpuClock) -> None:
    pass


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, without the spin among the activities."""
    if frame.get("activities"):
        frame["activities"] = [row for row in frame["activities"] if "spin" not in row[0]]
    plain_send(self, frame, *timeout)


GpuClock.drain, GpuClock.copy, GpuClock.sweep, Channel.send = drain, copy, sweep, send


def shared_output() -> torch.Tensor | None:
    """The judge's buffer for the output of a held call."""
    caller, buffers, frame = None, None, sys._getframe(1)
    while frame is not None:
        if caller is None and "buffers" in frame.f_locals:
            caller, buffers = frame.f_locals["self"], frame.f_locals["buffers"]
        if frame.f_code.co_name == "hold":
            return view(caller._arena, buffers.outputs[0])
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        out = shared_output()
        if out is None:
            return kernels.scale_rows(diagonal, matrix)
        kernels.scale_rows_into(diagonal, matrix, out)
        return out
