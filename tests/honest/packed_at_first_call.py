"""Packs its weights at the first call and keeps them.

Suspicious: a cache that is filled at the first call, when the weights are there, and used ever after. Honest: the
weights are no inputs, and don't change.
"""

import itertools

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "init_arguments"


class ModelNew(nn.Module):
    def __init__(self, sizes: tuple[int, int], layer_sizes: list[int], slope: float = 0.1) -> None:
        super().__init__()
        self.slope = slope
        widths = [sizes[1], *layer_sizes]
        layers = [nn.Linear(ins, outs) for ins, outs in itertools.pairwise(widths)]
        self.layers = nn.ModuleList(layers)
        self.packed: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.packed:
            self.packed = [layer.weight.T.contiguous() for layer in self.layers]
        for packed, layer in zip(self.packed, self.layers, strict=True):
            out = torch.empty(x.shape[0], packed.shape[1], device=x.device)
            kernels.linear(x, packed, layer.bias, True, out)
            kernels.leaky_relu(out, self.slope)
            x = out
        return x
