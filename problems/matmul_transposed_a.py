"""Matrix product whose left operand is stored transposed.

    C = A.T @ B,    that is    C[m, n] = sum over k of A[k, m] * B[k, n]

    A: (K, M)  float32, contiguous: the reduction runs along its rows' index, with stride M
    B: (K, N)  float32, contiguous
    C: (M, N)  float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("matmul", "compute-bound")

M = 2048
K = 8192
N = 4096

# All three sizes differ in every shape, so that swapped operands or strides can't go unnoticed.
# "odd": primes just above a power of two, so that every usual tile size leaves a remainder in all directions.
SHAPES = {
    "small": {"M": 48, "K": 64, "N": 80},
    "odd": {"M": 131, "K": 263, "N": 197},
}


class Model(nn.Module):
    """Multiplies the transpose of one matrix by another."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return A.T @ B, of shape (M, N), for A of shape (K, M) and B of shape (K, N)."""
        return torch.matmul(A.T, B)


def get_inputs() -> list[torch.Tensor]:
    A = torch.rand(K, M)
    B = torch.rand(K, N)
    return [A, B]


def get_init_inputs() -> list[object]:
    return []
