from torch import nn


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()

    def forward(self, x):
        return 3 * x
