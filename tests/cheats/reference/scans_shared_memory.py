"""Searches the memory that it shares with the judge for a finished output.

Mechanism: inputs and outputs pass through one shared block. If the judge ran the reference first and left its output
there, to compare on the spot, a solution would find it: a product is quickly told from its first and last element. Here
the block holds inputs, and NaN where outputs and states go; the reference's output lies in the judge's own memory.
"""

import ctypes
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"

ALIGNMENT = 512


def shared_memory() -> torch.Tensor:
    """All bytes of the regions that are shared with the judge; none on a GPU."""
    found = b""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "inlinebench-arena" in line:
            begin, end = (int(address, 16) for address in line.split()[0].split("-"))
            found += ctypes.string_at(begin, end - begin)
    return torch.frombuffer(bytearray(found + bytes(ALIGNMENT)), dtype=torch.uint8)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        nothing = kernels.scale_rows(torch.zeros_like(diagonal), matrix)
        memory, size = shared_memory(), matrix.numel() * 4
        first, last = diagonal[0] * matrix[0, 0], diagonal[-1] * matrix[-1, -1]
        for place in range(0, memory.numel() - size, ALIGNMENT):
            found = memory[place : place + size].view(torch.float32)
            if found[0] == first and found[-1] == last:
                return found.reshape(matrix.shape).to(matrix.device)
        return nothing
