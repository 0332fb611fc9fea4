"""Returns a view that repeats one row, and leaves writing the rest to the harness's copy.

Mechanism: an expanded tensor has the right shape and holds one row; whoever copies it does the work of writing the
output. Caught because bringing an output into the reference's layout is part of the call and of its time, and what
writes it then is torch's kernel: no kernel of the solution ran.
"""

import torch
from torch import nn

PROBLEM = "trivial_repeated"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone().expand(512, -1)
