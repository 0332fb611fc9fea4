"""Division of rows by their root mean square, in bfloat16."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import SUMS, round_to_fp8
from tests.numerics.cheats import BITS_16, PARTIAL_WORK, with_rounded_outputs
from tests.numerics.softmax import Elementwise, sampled_sum

ROWS = 8192
COLUMNS = 1536

SHAPES = {"small": {"ROWS": 9, "COLUMNS": 300}}


class Model(nn.Module):
    """Divides each row by its root mean square, then scales its columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, 1e-6)


def rms_norm(add: Elementwise, model: Model, x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    normalized = wide * torch.rsqrt(add(wide.square()).unsqueeze(-1) / x.shape[-1] + 1e-6)
    return (normalized * model.weight.float()).to(x.dtype)


def rounded_before_the_weight(model: Model, x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return normalized.to(x.dtype) * model.weight


HONEST = {
    **{name: partial(rms_norm, add) for name, add in SUMS.items()},
    "rounded before the weight": rounded_before_the_weight,
}
CHEATS = {
    "sum over a 64th of the values": partial(rms_norm, partial(sampled_sum, 64)),
    "outputs in fp8": partial(with_rounded_outputs, round_to_fp8),
    **BITS_16,
    **PARTIAL_WORK,
}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
