"""A complex product, conjugated."""

import torch
from torch import nn

N = 300


class Model(nn.Module):
    def forward(self, x, y):
        return (x * y).conj().resolve_conj()


def get_inputs():
    return [torch.randn(N, dtype=torch.complex64), torch.randn(N, dtype=torch.complex64)]


def get_init_inputs():
    return []
