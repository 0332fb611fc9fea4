"""Edits the times in the answer on its way to the judge.

Mechanism: the clock is left alone; the method that sends frames is another one, and writes a twentieth of the time
into each. Caught because the judge clocks calls from outside, and no time that a candidate reports is believed.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.wire.channel import Channel
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

plain_send = Channel.send


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, with a shorter time."""
    if "device_ms" in frame:
        frame["device_ms"] /= 20
    plain_send(self, frame, *timeout)


Channel.send = send


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
