from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, order = x.sort()
        return x.sum(), order, x > 0, 0.31, {"shape": "flat", "largest": values[-1].clone()}
