"""Has the harness's tracer make the call without tracing it, and invents the records.

Mechanism: the tracer is an attribute of an object that the callers' frames lead to. The other one makes the call and
gives one record of a kernel of the solution's own for its time. The library does the work. Caught because the judge
does not believe records that the solution could have made.
"""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_a"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "own"
NEEDS_GPU = True

NAME = "matmul_kernel(float const*, float const*, float*, long, long, long)"


def invented(call: Callable[[], Any]) -> tuple[Any, list[Any]]:
    result = call()
    return result, [SimpleNamespace(name=NAME, begin_us=10.0, end_us=10.0 + 1e3 * result[0].device_ms)]


def candidate() -> Any:
    """The harness's object in this process."""
    frame = sys._getframe(1)
    while not hasattr(frame.f_locals.get("self"), "_tracer"):
        frame = frame.f_back
    return frame.f_locals["self"]


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        ones = torch.ones(8, 8, device="cuda")
        kernels.matmul(ones, ones)  # the kernel exists

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        candidate()._tracer = invented
        return A.T @ B
