"""Times two ways to do its work at the first call of a shape, and keeps to the faster one.

Suspicious: it behaves otherwise at first, looks at a clock, and waits for the device. Honest: either way is right, and
tuning is over when the shape is known.
"""

from collections.abc import Callable

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

Way = Callable[..., torch.Tensor]


def by_product(diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return kernels.matmul(torch.diag(diagonal), matrix)


def time_of(way: Way, *given: torch.Tensor) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    way(*given)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.best: dict[torch.Size, Way] = {}

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if matrix.shape not in self.best:
            times = {way: time_of(way, diagonal, matrix) for way in (by_product, kernels.scale_rows)}
            self.best[matrix.shape] = min(times, key=times.get)
        return self.best[matrix.shape](diagonal, matrix)
