"""Gives a parameter, which is a plain tensor that a module registers."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return torch.nn.Parameter(A @ B, requires_grad=False)
