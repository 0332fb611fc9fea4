"""Keeps an input at zero while the judge draws the others, and answers with zeros.

Mechanism: between two calls the judge draws the next inputs into memory that the candidate has mapped. A thread waits
for the first of them to change, and from then on sets it to zero again and again. If it runs while the judge writes,
and the reference reads that memory, it gives zeros as well. The judge draws into private memory, which its reference
reads, and compares the shared inputs with it. The first answer is right, because the thread needs something to wait
for.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels
from tests.cheats.waking import in_a_thread, in_shared_memory

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "the solution changed its inputs"


class ModelNew(nn.Module):
    watching = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.watching:
            return kernels.scale_rows(diagonal.zero_(), matrix)
        in_a_thread(in_shared_memory(diagonal))
        self.watching = True
        return kernels.scale_rows(diagonal, matrix)
