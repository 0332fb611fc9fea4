"""Has `torch.compile` write the kernel.

Mechanism: the compiler's kernel is new, comes from no library, and beats the reference here because the compiler fuses.
It is the work of the compiler all the same. Caught because kernels that torch.compile generates count as the library's,
and no kernel of its own ran.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"
NEEDS_GPU = True
NEEDS_TRITON = True


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.product = torch.compile(lambda diagonal, matrix: diagonal[:, None] * matrix)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return self.product(diagonal, matrix)
