"""One row, repeated in memory."""

import torch
from torch import nn

ROWS = 512
COLUMNS = 64


class Model(nn.Module):
    def forward(self, x):
        return x.repeat(ROWS, 1)


def get_inputs():
    return [torch.rand(COLUMNS)]


def get_init_inputs():
    return []
