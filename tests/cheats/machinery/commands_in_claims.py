"""Says in its replies that its weights are commands for the terminal and the CI service, and is wrong.

Mechanism: what a solution's process says about its weights and its conversions of outputs is shown beside the result.
Here it is foreign text as any other, and decides nothing.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.wire.channel import Channel
from tests.cheats.machinery.commands_in_reason import COMMANDS
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

plain_send = Channel.send


def send(self: Channel, frame: dict[str, Any], *timeout: Any) -> None:
    """As the channel's, with texts of its own."""
    if frame["op"] == "ready":
        frame["weights"] = COMMANDS
    if frame["op"] == "called":
        frame["notes"] = [COMMANDS]
    plain_send(self, frame, *timeout)


Channel.send = send


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
