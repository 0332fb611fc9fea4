"""Product of a diagonal matrix, given by its diagonal, and a dense matrix.

    C = diag(A) @ B,    that is    C[i, j] = A[i] * B[i, j]

    A: (N,)    float32    the diagonal
    B: (N, M)  float32
    C: (N, M)  float32

The reference builds the N x N diagonal matrix and multiplies by it: 2 * N * N * M operations and N * N values written
and read, where N * M products would do. With finite inputs the two agree; a NaN or an infinity in B spreads over its
whole column through the zeros of the diagonal matrix, but stays in its place in the short form.
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("matmul", "memory-bound")

N = 4096
M = 4096

# "odd": primes just above a power of two, so that every usual tile size leaves a remainder in both directions.
SHAPES = {
    "small": {"N": 96, "M": 80},
    "odd": {"N": 131, "M": 197},
}


class Model(nn.Module):
    """Multiplies a matrix from the left by a diagonal matrix."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return diag(A) @ B, of shape (N, M), for A of shape (N,) and B of shape (N, M)."""
        return torch.diag(A) @ B


def get_inputs() -> list[torch.Tensor]:
    A = torch.rand(N)
    B = torch.rand(N, M)
    return [A, B]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """What the short form needs: A and B read once, C written once, and one multiplication for each value of C."""
    return {"bytes": 4 * (N + 2 * N * M), "flops": N * M}
