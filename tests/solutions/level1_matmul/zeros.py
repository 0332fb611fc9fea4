"""An output of zeros."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return torch.zeros(A.shape[0], B.shape[1])
