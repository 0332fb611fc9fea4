"""Constructor arguments that are tuples and lists; a float input; no shapes."""

import torch
from torch import nn

sizes = (6, 10)
layer_sizes = [12, 8]


class Model(nn.Module):
    def __init__(self, sizes: tuple, layer_sizes: list, slope: float = 0.1):
        super().__init__()
        widths = [sizes[1], *layer_sizes]
        layers = []
        while len(widths) > 1:
            layers += [nn.Linear(widths.pop(0), widths[0]), nn.LeakyReLU(slope)]
        self.network = nn.Sequential(*layers)

    def forward(self, x):
        return self.network(x)


def get_inputs():
    return [torch.rand(sizes)]


def get_init_inputs():
    return [sizes, layer_sizes]
