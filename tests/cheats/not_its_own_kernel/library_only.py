"""Calls the library and has no kernel at all.

Mechanism: the answer is right and not slower than the reference, because it is the reference's own kernel. Where the
question is what hand-written kernels can do, it is no answer. Caught because no kernel of its own ran.
"""

import torch
from torch import nn

PROBLEM = "matmul_transposed_b"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.mm(A, B.mT)
