"""Says that its output is where the judge has just written the input, and does nothing in held calls.

Mechanism: the output is a copy of a part of the input, which lies in the shared memory, and so does whatever an answer
may point to. The values are right, and no kernel has made them. Caught because an output that shares memory with an
input is refused where the reference's has memory of its own; the judge looks at the location itself.

True time: the copy of 128 bytes takes 2 µs, and none is made.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.candidate.calls import Caller
from tests.cheats.holding import Location, Places, in_held_call
from tests.cheats.shared import kernels

PROBLEM = "aliasing"
EXPECTED = "rejected"
CAUGHT_BY = "a location is inside an input"
NEEDS_GPU = True
SHAPE = "full"


def share(self: Caller, handed: Any) -> Places:
    spec, _ = handed.tensors[0]
    buffers = next(each for each in self._form.sets if each.outputs[0] == spec)
    return [Location("", buffers.inputs[0].offset)]


Caller._share = share


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if in_held_call():
            return torch.empty_like(x[: len(x) // 2])
        return kernels.scale_rows(torch.ones(1, device=x.device), x[None, : len(x) // 2].contiguous())[0]
