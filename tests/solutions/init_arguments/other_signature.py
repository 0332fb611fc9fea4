from torch import nn


class ModelNew(nn.Module):
    def __init__(self, sizes):
        super().__init__()

    def forward(self, x):
        return x
