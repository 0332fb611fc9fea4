"""Calls the library, and has the harness count launches of kernels that never ran.

Mechanism: without a GPU, launches are counted by a function of the harness in the solution's own process. It is an
import away, and its answer can be anything. Caught because the judge does not believe a count that the solution
could have made.
"""

import itertools

import torch
from torch import nn

from inlinebench.cuda_on_cpu import python_side

PROBLEM = "matmul_transposed_b"
EXPECTED = "rejected"
CAUGHT_BY = "no kernel of its own ran"

count = itertools.count(step=1000)
python_side.launches = lambda _library: next(count)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.mm(A, B.mT)
