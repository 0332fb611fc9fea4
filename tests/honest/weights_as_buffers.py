"""Weights and biases are buffers, not parameters.

Suspicious: the reference's parameters have no counterpart that could be overwritten. Honest: they are drawn under the
same seed, so they are equal.
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
        self.depth = len(layers)
        for number, layer in enumerate(layers):
            self.register_buffer(f"weight{number}", layer.weight.detach())
            self.register_buffer(f"bias{number}", layer.bias.detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(self.depth):
            weight, bias = getattr(self, f"weight{number}"), getattr(self, f"bias{number}")
            out = torch.empty(x.shape[0], len(bias), device=x.device)
            kernels.linear(x, weight, bias, False, out)
            kernels.leaky_relu(out, self.slope)
            x = out
        return x
