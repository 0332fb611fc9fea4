from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        _, order = x.sort()
        return x.sum(), order, x > 0, 0.3
