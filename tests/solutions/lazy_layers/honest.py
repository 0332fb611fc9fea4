from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first, self.bn, self.last = nn.LazyLinear(features), nn.LazyBatchNorm1d(), nn.LazyLinear(4)

    def forward(self, x):
        return self.last(self.bn(self.first(x)).clamp(min=0))
