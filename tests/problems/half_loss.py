"""The mean of many squared differences in half precision: of one size whatever the signs of the inputs."""

import torch
from torch import nn

N = 1 << 20


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.nn.functional.mse_loss(predictions, targets).half()


def get_inputs():
    return [torch.rand(N), torch.rand(N)]


def get_init_inputs():
    return []
