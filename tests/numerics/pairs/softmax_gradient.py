"""The gradient of a softmax whose rows have a dominant value, out * (gradient - sum of gradient * out).

Where out is nearly 1, the difference cancels, and what is left depends on the last bit of out and of the sum. No change
of an input by rounding shows that: another order of the sum does.
"""

import torch
from torch import nn

ROWS, COLUMNS = 4096, 2048
SHAPES = {"small": {"ROWS": 64, "COLUMNS": 509}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        out = torch.softmax(x, dim=-1)
        return torch.ops.aten._softmax_backward_data(gradient, out, -1, x.dtype)


def get_inputs() -> list[torch.Tensor]:
    x, dominated = torch.randn(ROWS, COLUMNS), torch.arange(0, ROWS, 4)
    x[dominated, torch.randint(COLUMNS, dominated.shape)] = 20 + 4 * torch.rand(dominated.shape)
    gradient = torch.randn(ROWS, COLUMNS)
    gradient[dominated] = gradient[dominated, :1] * (1 + 1e-3 * torch.randn(len(dominated), COLUMNS))
    return [x, gradient]


def get_init_inputs() -> list[object]:
    return []


def small_first(model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Sums the terms from the smallest to the largest one."""
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    out = powers / powers.sort(dim=-1).values.cumsum(-1)[:, -1:]
    terms = gradient * out
    order = terms.abs().argsort(dim=-1)
    return out * (gradient - terms.gather(-1, order).cumsum(-1)[:, -1:])


def large_first(model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Sums the terms from the largest to the smallest one."""
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    out = powers / powers.sort(dim=-1, descending=True).values.cumsum(-1)[:, -1:]
    terms = gradient * out
    order = terms.abs().argsort(dim=-1, descending=True)
    return out * (gradient - terms.gather(-1, order).cumsum(-1)[:, -1:])


def in_blocks(model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Sums 32 parts, then their sums, and multiplies by the reciprocal of the sum."""

    def total(values: torch.Tensor) -> torch.Tensor:
        return torch.stack([part.cumsum(-1)[:, -1] for part in values.tensor_split(32, dim=-1)], -1).sum(-1, True)

    powers = torch.exp(x - x.amax(-1, keepdim=True))
    out = powers * (1 / total(powers))
    return out * (gradient - total(gradient * out))


def out_in_float16(model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Keeps out in half precision for the backward."""
    out = torch.softmax(x, dim=-1).half().float()
    return out * (gradient - (gradient * out).sum(-1, keepdim=True))


def without_the_sum(model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Forgets that the values of a row are normalized together."""
    out = torch.softmax(x, dim=-1)
    return out * (gradient - gradient * out)


HONEST = {"small first": small_first, "large first": large_first, "in blocks": in_blocks}
CHEATS = {"out in float16": out_in_float16, "without the sum": without_the_sum}
