"""Linear layer, a learned scale per feature, and batch normalization in train mode.

    Y = X @ W.T + b                                          (nn.Linear)
    Z = Y * scale
    out = (Z - mean) / sqrt(var + eps) * weight + bias       (nn.BatchNorm1d)

    X:            (batch_size, in_features)    float32
    W, b:         (out_features, in_features), (out_features,)
    scale:        scale_shape, which is (out_features,)
    mean, var:    (out_features,), over the batch; var is the biased one (divided by batch_size)
    weight, bias: (out_features,)
    out:          (batch_size, out_features)   float32

Every call also updates the state of the batch normalization, with var here the unbiased one (divided by
batch_size - 1):

    running_mean = (1 - momentum) * running_mean + momentum * mean
    running_var  = (1 - momentum) * running_var  + momentum * var
    num_batches_tracked += 1
"""

import torch
from torch import nn

LEVEL = 2
TAGS = ("matmul", "normalization", "fusion", "compute-bound")

batch_size = 1024
in_features = 8192
out_features = 8192
scale_shape = (out_features,)

# "odd": primes just above a power of two, so that every usual tile or block size leaves a remainder.
SHAPES = {
    "small": {"batch_size": 40, "in_features": 64, "out_features": 48},
    "odd": {"batch_size": 263, "in_features": 131, "out_features": 197},
}


class Model(nn.Module):
    """Linear layer followed by a scale and batch normalization over the batch."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        scale_shape: tuple[int, ...],
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(out_features, eps=eps, momentum=momentum)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized features, of shape (batch_size, out_features), for x (batch_size, in_features)."""
        x = self.gemm(x)
        x = x * self.scale
        x = self.bn(x)
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(batch_size, in_features)]


def get_init_inputs() -> list[object]:
    return [in_features, out_features, scale_shape]
