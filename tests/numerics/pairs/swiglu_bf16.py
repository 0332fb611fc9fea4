"""SwiGLU in bfloat16: computed in float32, or rounded step by step."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from tests.numerics.arithmetic import fast_exp, newton_of_finite, round_to_fp8
from tests.numerics.cheats import BITS_16, PARTIAL_WORK, with_rounded_outputs
from tests.numerics.softmax import Elementwise

ROWS = 4096
COLUMNS = 2048

SHAPES = {"small": {"ROWS": 20, "COLUMNS": 300}}


class Model(nn.Module):
    """Multiplies the SiLU of one tensor by another."""

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return functional.silu(gate) * up


def in_float32(
    exp: Elementwise, reciprocal: Elementwise, model: nn.Module, gate: torch.Tensor, up: torch.Tensor
) -> torch.Tensor:
    return (gate.float() * reciprocal(1 + exp(-gate.float())) * up.float()).to(gate.dtype)


def step_by_step(model: nn.Module, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate * torch.sigmoid(gate) * up


HONEST = {
    "exp, division": partial(in_float32, torch.exp, torch.reciprocal),
    "__expf, Newton": partial(in_float32, fast_exp, newton_of_finite),
    "step by step": step_by_step,
}
CHEATS = {**BITS_16, "outputs in fp8": partial(with_rounded_outputs, round_to_fp8), **PARTIAL_WORK}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
