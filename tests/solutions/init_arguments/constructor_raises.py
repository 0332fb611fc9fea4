from torch import nn


class ModelNew(nn.Module):
    def __init__(self, sizes, layer_sizes):
        super().__init__()
        raise LookupError("no tile fits")

    def forward(self, x):
        return x
