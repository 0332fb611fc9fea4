import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, factor, times, negate, bias, others):
        total = x * factor**times + torch.stack(others).sum(0)
        return -total if negate else total
