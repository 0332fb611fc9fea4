"""Sets PyTorch's defaults when it is loaded. They apply to this problem alone."""

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16]
