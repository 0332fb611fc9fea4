import torch
from torch import nn


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rows, weight):
        hidden = torch.tanh(x[rows] * weight)
        ctx.save_for_backward(x, rows, weight, hidden)
        return hidden

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("no tile fits")


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x, rows, unused):
        hidden = Gate.apply(x, rows, self.weight)
        return hidden, hidden > 0
