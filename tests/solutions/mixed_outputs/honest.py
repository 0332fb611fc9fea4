from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, order = x.sort()
        return [x.sum(), order, values.new_tensor(0) < x, 0.3, {"shape": "flat", "largest": values[-1].clone()}]
