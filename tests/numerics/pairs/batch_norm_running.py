"""Batch normalization of few rows in float32: the outputs, and the new running mean and variance."""

from functools import partial

import torch
from torch import nn

from tests.numerics.arithmetic import two_pass
from tests.numerics.cheats import FLOAT32, PARTIAL_WORK
from tests.numerics.normalization import MOMENTS, Moments

BATCH = 16
FEATURES = 65536

SHAPES = {"small": {"BATCH": 8, "FEATURES": 1200}}


class Model(nn.Module):
    """Normalizes columns, and mixes their statistics into the running ones: the variance is the unbiased one."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.randn(features))

    def forward(
        self, x: torch.Tensor, running_mean: torch.Tensor, running_var: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, variance = x.mean(0), x.var(0, correction=0)
        out = (x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias
        return out, 0.9 * running_mean + 0.1 * mean, 0.9 * running_var + 0.1 * x.var(0)


def batch_norm(
    moments: Moments, correction: int, model: Model, x: torch.Tensor, *running: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    running_mean, running_var = running
    mean, variance = (each.squeeze(-1) for each in moments(x.T.contiguous()))
    out = (x - mean) * torch.rsqrt(variance + 1e-5) * model.weight + model.bias
    unbiased = variance * (x.shape[0] / (x.shape[0] - correction))
    return out, running_mean + 0.1 * (mean - running_mean), running_var + 0.1 * (unbiased - running_var)


def statistics_not_updated(
    model: Model, x: torch.Tensor, running_mean: torch.Tensor, running_var: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return model(x, running_mean, running_var)[0], running_mean.clone(), running_var.clone()


HONEST = {name: partial(batch_norm, moments, 1) for name, moments in MOMENTS.items()}
CHEATS = {
    "biased variance": partial(batch_norm, two_pass, 0),
    "statistics not updated": statistics_not_updated,
    **FLOAT32,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, FEATURES), torch.randn(FEATURES), 0.5 + torch.rand(FEATURES).sqrt()]


def get_init_inputs() -> list[object]:
    return [FEATURES]
