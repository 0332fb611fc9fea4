"""Product of two symmetric matrices. It is not symmetric itself, unless they commute.

    C = A @ B    with A = A.T and B = B.T

    A, B, C: (N, N)  float32, contiguous
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
    """Multiplies two symmetric matrices."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """Return A @ B, of shape (N, N), for symmetric A and B of shape (N, N)."""
        return torch.matmul(A, B)


def symmetric() -> torch.Tensor:
    """Return a random symmetric matrix, of shape (N, N)."""
    x = torch.randn(N, N)
    return (x + x.T) / 2


def get_inputs() -> list[torch.Tensor]:
    return [symmetric(), symmetric()]


def get_init_inputs() -> list[object]:
    return []
