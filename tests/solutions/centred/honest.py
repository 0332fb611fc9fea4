from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x - x.sum(1, keepdim=True) / x.shape[1]).sum(1) / x.shape[1]
