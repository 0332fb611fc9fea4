"""Linear layer, group normalization of its features, and a clamp.

    y = x @ W.T + b
    z[i, j] = (y[i, j] - mean[i, g]) / sqrt(var[i, g] + 1e-5) * weight[j] + bias[j],    g = j // (FEATURES / GROUPS)
    out = min(max(z, LOW), HIGH)

    x:            (BATCH, WIDTH)                     float32
    W, b:         (FEATURES, WIDTH), (FEATURES,)     float32
    mean, var:    of the FEATURES / GROUPS neighbouring features of a group, in a row; var is the biased one
    weight, bias: (FEATURES,)                        float32
    out:          (BATCH, FEATURES)                  float32

Weight and bias of the normalization are drawn at random, because with ones and zeros a solution that leaves them out
would pass.
"""

import torch
from torch import nn
from torch.nn import functional

LEVEL = 2
TAGS = ("matmul", "normalization", "fusion", "compute-bound")

BATCH = 1024
WIDTH = 8192
FEATURES = 8192
GROUPS = 16
LOW = -1.0
HIGH = 2.0

# "odd": primes, but for FEATURES, which GROUPS has to divide: groups of 19 features.
SHAPES = {
    "small": {"BATCH": 40, "WIDTH": 64, "FEATURES": 96, "GROUPS": 4},
    "odd": {"BATCH": 67, "WIDTH": 131, "FEATURES": 133, "GROUPS": 7},
}


class Model(nn.Module):
    """Linear layer followed by group normalization and a clamp."""

    def __init__(self, width: int, features: int, groups: int, low: float, high: float) -> None:
        super().__init__()
        self.groups = groups
        self.low = low
        self.high = high
        self.gemm = nn.Linear(width, features)
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the clamped features, of shape (batch, features), for x (batch, width)."""
        normalized = functional.group_norm(self.gemm(x), self.groups, self.weight, self.bias)
        return functional.hardtanh(normalized, self.low, self.high)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, FEATURES, GROUPS, LOW, HIGH]
