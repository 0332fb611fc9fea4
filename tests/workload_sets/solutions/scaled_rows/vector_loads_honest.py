"""Reads four elements at once only where each row begins at a multiple of four."""

import torch
from torch import nn

from tests.workload_sets.vectors import launch


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return launch(x, self.weight, 0 if x.shape[1] % 4 else x.shape[1] // 4)
