"""Carries its own inputs, constructor arguments and constants, as model-written files do: they are ignored."""

import torch.nn.functional as F
from torch import nn

sizes = (999, 999)
layer_sizes = [1]


class ModelNew(nn.Module):
    def __init__(self, sizes, layer_sizes, slope=0.1):
        super().__init__()
        self.slope = slope
        self.first = nn.Linear(sizes[1], layer_sizes[0])
        self.second = nn.Linear(layer_sizes[0], layer_sizes[1])

    def forward(self, x):
        return F.leaky_relu(self.second(F.leaky_relu(self.first(x), self.slope)), self.slope)


def get_inputs():
    raise AssertionError("the problem's inputs are used")


def get_init_inputs():
    raise AssertionError("the problem's arguments are used")
