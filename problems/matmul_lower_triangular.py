"""Product of two lower triangular matrices, which is lower triangular as well.

    C = tril(A @ B),    that is    C[i, j] = sum over k from j to i of A[i, k] * B[k, j] for j <= i, else 0

    A, B: (N, N)  float32, contiguous, zeros above the diagonal
    C:    (N, N)  float32, zeros above the diagonal
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("matmul", "compute-bound")

N = 4096

# "odd": a prime just above a power of two, so that every usual tile size leaves a remainder.
SHAPES = {
    "small": {"N": 96},
    "odd": {"N": 263},
}


class Model(nn.Module):
    """Multiplies two lower triangular matrices."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return the lower triangle of A @ B, of shape (N, N), for lower triangular A and B of shape (N, N)."""
        return torch.tril(torch.matmul(A, B))


def get_inputs() -> list[torch.Tensor]:
    A = torch.tril(torch.randn(N, N))
    B = torch.tril(torch.randn(N, N))
    return [A, B]


def get_init_inputs() -> list[object]:
    return []


def work() -> dict[str, int]:
    """Return what has to be done at least: half of each matrix is read, a sixth of the products of a full one made."""
    triangle = N * (N + 1) // 2
    return {"bytes": 4 * (2 * triangle + N * N), "flops": 2 * (N * (N + 1) * (N + 2) // 6)}
