from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.new_ones(len(x)) @ x
