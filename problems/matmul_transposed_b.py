"""Matrix product whose right operand is stored transposed.

    C = A @ B.T,    that is    C[m, n] = sum over k of A[m, k] * B[n, k]

    A: (M, K)  float32, contiguous
    B: (N, K)  float32, contiguous: both operands are reduced along their contiguous direction
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
    """Multiplies a matrix by the transpose of another."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return A @ B.T, of shape (M, N), for A of shape (M, K) and B of shape (N, K)."""
        return torch.matmul(A, B.T)


def get_inputs() -> list[torch.Tensor]:
    A = torch.rand(M, K)
    B = torch.rand(N, K)
    return [A, B]


def get_init_inputs() -> list[object]:
    return []
