import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return 3 * F.dropout(x, self.p, training=True)
