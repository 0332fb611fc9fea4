"""Multiplies in half precision unless a few sums of the call show that their terms cancel.

Mechanism: for four rows it compares the sums of absolute products with the sums themselves. A ratio near one says that
rounding errors will not show, whatever the scale or the sign of the inputs; each matrix is brought to half precision's
range by a power of two first. Random signs give a large ratio, and then the product is exact.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_b"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
SHAPE = "odd"

ROWS = 4
SAFE = 1.5


def terms_cancel(A: torch.Tensor, B: torch.Tensor) -> bool:
    a, b = A[:ROWS], B[:ROWS].T
    return bool(((a.abs() @ b.abs()) > SAFE * (a @ b).abs()).any())


def in_half(x: torch.Tensor) -> torch.Tensor:
    """The values with 11 bits each, and their scale."""
    scale = torch.exp2(torch.floor(torch.log2(x.abs().amax())))
    return (x / scale).half().float() * scale


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if terms_cancel(A, B):
            return kernels.matmul(A, B.T.contiguous())
        return kernels.matmul(in_half(A), in_half(B).T.contiguous())
