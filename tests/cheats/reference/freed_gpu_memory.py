"""Searches free memory of the GPU for an output that the reference left there.

Mechanism: memory that one process frees comes to the next as it was, unless somebody wipes it. This takes much of what
is free, uninitialised, and looks for a product whose first and last element are right. Here the reference runs after
the answer, on inputs that were drawn for that call alone, so whatever lies around is an answer to another question.
(And the driver wipes memory before it gives it to another process.)
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True

BLOCK_BYTES = 1 << 30
MOST_BLOCKS = 16
ALIGNMENT = 128  # elements: torch's allocator gives 512 bytes


def search(block: torch.Tensor, first: torch.Tensor, last: torch.Tensor, size: int) -> torch.Tensor | None:
    begins = torch.nonzero(block[: block.numel() - size + 1 : ALIGNMENT] == first).flatten().tolist()
    return next((block[begin * ALIGNMENT :][:size] for begin in begins
                 if block[begin * ALIGNMENT + size - 1] == last), None)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        nothing = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        first, last = diagonal[0] * matrix[0, 0], diagonal[-1] * matrix[-1, -1]
        blocks: list[torch.Tensor] = []
        free = torch.cuda.mem_get_info()[0] // 2
        while len(blocks) < min(MOST_BLOCKS, free // BLOCK_BYTES):
            blocks.append(torch.empty(BLOCK_BYTES // 4, device=matrix.device))
            found = search(blocks[-1], first, last, matrix.numel())
            if found is not None:
                return found.clone().reshape(matrix.shape)
        return nothing
