"""Weights and biases in two ParameterLists.

Suspicious: names and order differ from the reference's. Honest: the tensors are the same, and drawn in its order.
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
        self.weights = nn.ParameterList([layer.weight for layer in layers])
        self.biases = nn.ParameterList([layer.bias for layer in layers])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight, bias in zip(self.weights, self.biases, strict=True):
            out = torch.empty(x.shape[0], len(bias), device=x.device)
            kernels.linear(x, weight, bias, False, out)
            kernels.leaky_relu(out, self.slope)
            x = out
        return x
