"""By columns."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return torch.stack([A @ column for column in B.T], 1)
