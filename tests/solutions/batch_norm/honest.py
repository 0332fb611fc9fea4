"""Parameters and buffers under names of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.projection = nn.Linear(features, features)
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("variance", torch.ones(features))

    def forward(self, x):
        x = self.projection(x)
        mean, biased = x.mean(0), x.var(0, unbiased=False)
        self.mean.lerp_(mean, 0.1)
        self.variance.lerp_(x.var(0, unbiased=True), 0.1)
        return (x - mean) * torch.rsqrt(biased + 1e-5) * self.gamma + self.beta
