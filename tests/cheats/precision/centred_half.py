"""Takes the means off exactly and multiplies what is left in half precision.

Mechanism: a product is its means' part, which a sum of rows and a sum of columns give in float32, plus the product of
the deviations. Where the means carry most of the output, the errors of the small part are far below 1e-4 of it. Without
a mean, as with random signs, everything is computed in float32.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
SHAPE = "odd"

CARRIES = 1.0


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a, b = A.mean(), B.mean()
        if a.abs() < CARRIES * A.std() or b.abs() < CARRIES * B.std():
            return kernels.matmul(A, B.T.contiguous())
        rest = kernels.matmul((A - a).half().float(), (B - b).half().float().T.contiguous())
        return rest + b * A.sum(1, keepdim=True) + a * B.sum(1) - a * b * A.shape[1]
