from torch import nn


class ModelNew(nn.Module):
    """Its lazy layers have no counterpart of their names, so they draw weights of their own."""

    def __init__(self, features):
        super().__init__()
        self.one, self.bn, self.two = nn.LazyLinear(features), nn.LazyBatchNorm1d(), nn.LazyLinear(4)

    def forward(self, x):
        return self.two(self.bn(self.one(x)).clamp(min=0))
