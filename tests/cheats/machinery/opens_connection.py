"""Opens a connection to the network.

Mechanism: what can reach the network can send away what it reads and fetch what it hasn't computed. No packet is sent:
connecting a datagram socket only asks the kernel for a way to an address that is reserved for examples. The answer is
zeros where there is one. In the sandbox there is no network.
"""

import socket

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "Error: [Errno"
NEEDS_SANDBOX = True

RESERVED = ("198.51.100.1", 9)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
            connection.connect(RESERVED)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
