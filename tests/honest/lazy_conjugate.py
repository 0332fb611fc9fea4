"""Its output is a lazily conjugated view: a flag on what the kernel wrote.

Suspicious: its memory holds other numbers than the output has. Honest: the flag is part of the tensor, and a copy
resolves it.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_complex"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b, c, d = (part.contiguous() for part in (x.real, x.imag, y.real, y.imag))
        products = torch.empty(4, len(x), device=x.device)
        for out, (left, right) in zip(products, [(a, c), (b, d), (a, d), (b, c)], strict=True):
            kernels.multiply(left, right, 1.0, out)
        return torch.complex(products[0] - products[1], products[2] + products[3]).conj()
