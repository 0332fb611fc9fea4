"""Answers the judge itself, with a time of its own making, before the harness does.

Mechanism: the callers' frames hold the channel and the nonce of the question, and the judge's output buffer. With the
right output there and an answer sent from within `forward`, the call is over for the judge. Caught because the honest
answer comes as well, and no longer answers a request.
"""

import sys
from typing import Any

import torch
from torch import nn

from inlinebench.wire.arena import view
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "answers no request"


def find(name: str, attribute: str = "") -> Any:
    """The nearest caller's local variable of a name (that has an attribute)."""
    frame = sys._getframe(1)
    while name not in frame.f_locals or (attribute and not hasattr(frame.f_locals[name], attribute)):
        frame = frame.f_back
    return frame.f_locals[name]


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        candidate = find("self", "_channel")
        view(find("self", "_arena")._arena, find("buffers").outputs[0]).copy_(out)
        torch.cuda.synchronize()
        candidate._channel.send({
            "op": "called", "device_ms": 1e-3, "forward_ms": None, "drain_ms": 0.0, "blocked": True, "non_tensors": [],
            "notes": [], "activities": [], "memory": None, "nonce": find("request")["nonce"],
        })
        return out
