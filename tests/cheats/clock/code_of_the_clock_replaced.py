"""Gives the harness's function that times a call another code, in place.

Mechanism: binding a function before the solution is imported keeps the name, and the function object stays the one that
everybody holds. Its `__code__` can be assigned, so every holder runs the new one: the old one, with its sample's time
divided by twenty. Caught because the judge clocks calls from outside, and no time that a candidate reports is believed.
"""

import types
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from inlinebench.timing import call
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

plain = types.FunctionType(call.timed_call.__code__, call.__dict__, "plain", call.timed_call.__defaults__)
call.plain_timed_call, call.with_other_time = plain, replace


def timed(*arguments: Any, **named: Any) -> Any:
    """Runs in the globals of the harness's module."""
    handed, sample = plain_timed_call(*arguments, **named)  # noqa: F821
    return handed, with_other_time(sample, device_ms=sample.device_ms / 20)  # noqa: F821


call.timed_call.__code__ = timed.__code__


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(SLOW_CYCLES)
        return kernels.scale_rows(diagonal, matrix)
