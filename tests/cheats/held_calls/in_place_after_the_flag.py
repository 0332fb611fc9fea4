"""Changes its input in place, as the reference does, when it has said that it is done.

Mechanism: where inputs that are changed in place are looked at after the clock, the change may come then. Only the
output is there in time. Caught because changed inputs and states are copied before the time is taken, as outputs are.

True time: 1.1 ms.
"""

import torch
from torch import nn

from tests.cheats.holding import GpuClock, in_held_call, report_a_share
from tests.cheats.shared import kernels
from tests.honest.shared import kernels as honest

PROBLEM = "honest_column_update"
EXPECTED = "wrong or rejected"
CAUGHT_BY = "a held call ( or its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 2_000_000

report_a_share(0.05)
plain_done = GpuClock.done
work: list[tuple[torch.Tensor, torch.Tensor]] = []


def done(self: GpuClock) -> None:
    plain_done(self)
    if work:
        kernels.spin(SLOW_CYCLES)
        honest.add_to_first_column(*work.pop())


GpuClock.done = done


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if in_held_call():
            work.append((x, y))
        else:
            kernels.spin(SLOW_CYCLES)
            honest.add_to_first_column(x, y)
        return x
