import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tril(torch.ones(len(x), len(x))) @ x
