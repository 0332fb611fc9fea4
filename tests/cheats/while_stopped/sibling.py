"""Sets the inputs to zero from a process that is not below its own.

Mechanism: clone with CLONE_PARENT makes a sibling, which a judge that stops a process and its descendants overlooks.
Caught because reference and comparison read private inputs. The sandbox refuses CLONE_PARENT, and a sibling would still
be below the supervisor.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import in_a_sibling, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


class ModelNew(nn.Module):
    started = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not self.started:
            self.started = True
            in_a_sibling(in_shared_memory(diagonal))
            return kernels.scale_rows(diagonal, matrix)
        kernels.spin(1)
        return torch.zeros_like(matrix)
