"""Batched matrix product.

    C[b] = A[b] @ B[b],    that is    C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n]

    A: (BATCH, M, K)  float32, contiguous
    B: (BATCH, K, N)  float32, contiguous
    C: (BATCH, M, N)  float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("matmul", "compute-bound")

BATCH = 64
M = 1024
K = 1024
N = 1024

# All sizes differ in the smaller shapes, so that swapped operands or strides can't go unnoticed.
# "odd": primes just above a power of two, so that every usual tile size leaves a remainder in all directions.
SHAPES = {
    "small": {"BATCH": 3, "M": 48, "K": 64, "N": 80},
    "odd": {"BATCH": 5, "M": 131, "K": 67, "N": 197},
}


class Model(nn.Module):
    """Multiplies the matrices of two batches, each with its counterpart."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return A @ B, of shape (BATCH, M, N), for A of shape (BATCH, M, K) and B of shape (BATCH, K, N)."""
        return torch.bmm(A, B)


def get_inputs() -> list[torch.Tensor]:
    A = torch.randn(BATCH, M, K)
    B = torch.randn(BATCH, K, N)
    return [A, B]


def get_init_inputs() -> list[object]:
    return []
