"""Convolutions of 3 x 3 with padding 1, stride 1, in the arithmetic of kernels."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.numerics.products import Product

INPUTS = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
WEIGHTS = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
OUTPUTS = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])
"""The matrices of Winograd's F(2 x 2, 3 x 3)."""


def im2col(product: Product, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Multiplies the weights by a matrix of all windows."""
    columns = functional.unfold(x, 3, padding=1)
    return product(weight.flatten(1).expand(x.shape[0], -1, -1), columns).unflatten(-1, x.shape[-2:])


def tap_by_tap(product: Product, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Adds nine products, one for each place of the window."""
    height, width = x.shape[-2:]
    padded = functional.pad(x, (1, 1, 1, 1))
    out = x.new_zeros(x.shape[0], weight.shape[0], height * width)
    for row in range(3):
        for column in range(3):
            window = padded[..., row : row + height, column : column + width].flatten(2)
            out += product(weight[..., row, column].expand(x.shape[0], -1, -1), window)
    return out.unflatten(-1, (height, width))


def winograd(product: Product, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Computes tiles of 2 x 2 outputs from 4 x 4 inputs by Winograd's algorithm."""
    to_inputs, to_weights, to_outputs = (each.to(x.device) for each in (INPUTS, WEIGHTS, OUTPUTS))
    batch, channels, height, width = x.shape
    padded = functional.pad(x, (1, 1 + width % 2, 1, 1 + height % 2))
    tiles = padded.unfold(2, 4, 2).unfold(3, 4, 2)
    rows, columns = tiles.shape[2:4]
    inputs = (to_inputs @ tiles @ to_inputs.T).permute(4, 5, 1, 0, 2, 3).reshape(4, 4, channels, -1)
    weights = (to_weights @ weight @ to_weights.T).permute(2, 3, 0, 1)
    sums = product(weights.contiguous(), inputs).unflatten(-1, (batch, rows, columns)).permute(3, 2, 4, 5, 0, 1)
    out = (to_outputs @ sums @ to_outputs.T).permute(0, 1, 2, 4, 3, 5)
    return out.reshape(batch, -1, 2 * rows, 2 * columns)[..., :height, :width].contiguous()
