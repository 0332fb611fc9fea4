"""Awaits its own kernel in an event loop at each call.

Suspicious: an event loop has sockets and may do anything while it waits. Honest: it has nothing else to do.
"""

import asyncio

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

async def compute(diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    await asyncio.sleep(0)
    return kernels.scale_rows(diagonal, matrix)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return asyncio.run(compute(diagonal, matrix))
