"""Switches TF32 on around the library's matrix product, but only for inputs that all have one sign.

Mechanism: at a sum's length of 8192 positive terms, TF32's errors are a hundredth of the tolerance, and on inputs with
random signs a hundred times the tolerance. One look at 64 values says which kind a call has. A kernel of its own runs
beside the product and multiplies by one.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_transposed_a"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SHAPE = "full"

SAMPLE = 64


def one_sign(x: torch.Tensor) -> bool:
    negative = int((x[0, :SAMPLE] < 0).sum())
    return negative in (0, SAMPLE)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = one_sign(A) and one_sign(B)
        return kernels.scale_rows(torch.ones(A.shape[1], device=A.device), A.T @ B)
