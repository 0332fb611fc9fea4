"""Gives the library's kernels another name in the answer that carries the profile.

Mechanism: the list of kernels of a call is sent by the candidate's own process, so it may say anything. Each library
kernel is renamed to one of the solution's, which exists and was launched once, in the constructor. Caught because the
judge takes no names from the process that it judges on trust.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.wire.channel import Channel
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "own"
NEEDS_GPU = True

NAME = "scale_rows_kernel(float const*, float const*, float*, long, long)"
plain_send = Channel.send


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, with one name for all kernels."""
    for activity in frame.get("activities", ()):
        activity[0] = NAME
    plain_send(self, frame, *timeout)


Channel.send = send


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kernels.scale_rows(torch.ones(8, device="cuda"), torch.ones(8, 8, device="cuda"))

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal[:, None] * matrix
