import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size, dtype=torch.float64)

    def forward(self, x):
        return x @ self.linear.weight.T + self.linear.bias
