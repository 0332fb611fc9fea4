"""Does the work in the harness's own copy of the output, through a `torch.Tensor.copy_` of its own.

Mechanism: `forward` makes a pass over memory that looks like the work, so the time is a likely one; the right values
come when the output is copied to where it is compared, after the stop event. Caught because outputs are copied as
bytes, by the clock's library: torch's method is not asked, and the right values never come.
"""

from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

pending: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
plain_copy = torch.Tensor.copy_


def copy_(self: torch.Tensor, source: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """As torch's, after the work that is due for the source."""
    if work := pending.pop(source.data_ptr(), None):
        kernels.scale_rows_into(*work, source)
    return plain_copy(self, source, *args, **named)


torch.Tensor.copy_ = copy_


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(torch.ones_like(diagonal), matrix)
        pending[out.data_ptr()] = (diagonal, matrix)
        return out
