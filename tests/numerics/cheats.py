"""Cheats that make something wrong of any reference's work. All take the model and the inputs of `forward`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from tests.numerics.arithmetic import round_to_fp8, round_to_tf32

Rounding = Callable[[torch.Tensor], torch.Tensor]


def in_dtype(dtype: torch.dtype, model: nn.Module, *inputs: Any) -> Any:
    """Computes everything in another floating-point dtype, and returns the result in the reference's."""
    own = next(each.dtype for each in inputs if _is_float(each))
    outputs = copy.deepcopy(model).to(dtype)(*(each.to(dtype) if _is_float(each) else each for each in inputs))
    return _each(lambda output: output.to(own) if _is_float(output) else output, outputs)


def with_rounded_inputs(rounding: Rounding, model: nn.Module, *inputs: Any) -> Any:
    """Rounds inputs and weights before the reference computes."""
    twin = copy.deepcopy(model)
    for weight in twin.parameters():
        weight.copy_(rounding(weight))
    return twin(*(rounding(each) if _is_float(each) else each for each in inputs))


def with_rounded_outputs(rounding: Rounding, model: nn.Module, *inputs: Any) -> Any:
    """Rounds the reference's outputs."""
    return _each(lambda output: rounding(output) if _is_float(output) else output, model(*inputs))


def stale_quarter(model: nn.Module, *inputs: Any) -> Any:
    """Returns the first quarter of each output for other inputs: floats rolled by one along their first dimension.

    Indices stay: rows that are rolled together with their indices would give the same sums.
    """
    stale = model(*(each.roll(1, 0) if _is_float(each) and each.ndim else each for each in inputs))
    fresh = model(*inputs)
    pairs = zip(_tensors(stale), _tensors(fresh), strict=True)
    mixed = tuple(torch.cat([old.reshape(-1)[: old.numel() // 4], new.reshape(-1)[old.numel() // 4 :]]).view_as(new)
                  for old, new in pairs)
    return mixed if isinstance(fresh, tuple) else mixed[0]


def without_last_row(model: nn.Module, *inputs: Any) -> Any:
    """Leaves zeros in the last row, or the last matrix, of each output."""
    return _each(lambda output: _zeroed(output, 0, 1), model(*inputs))


def without_last_columns(model: nn.Module, *inputs: Any) -> Any:
    """Leaves zeros in the last 16 columns of each output, or in the last one if there are few."""
    return _each(lambda output: _zeroed(output, -1, 16 if output.shape[-1] > 32 else 1), model(*inputs))


def without_small_elements(model: nn.Module, *inputs: Any) -> Any:
    """Leaves zeros where elements are below a thousandth of the output's root mean square."""
    return _each(lambda output: torch.where(output.abs() < 1e-3 * output.float().square().mean().sqrt(), 0.0, output)
                 .to(output.dtype), model(*inputs))


def _zeroed(output: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    changed = output.clone()
    changed.narrow(dim, changed.shape[dim] - count, count).zero_()
    return changed


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _tensors(outputs: Any) -> tuple[torch.Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _each(change: Callable[[torch.Tensor], torch.Tensor], outputs: Any) -> Any:
    return tuple(map(change, outputs)) if isinstance(outputs, tuple) else change(outputs)


PARTIAL_WORK: dict[str, Callable[..., Any]] = {
    "stale quarter": stale_quarter,
    "last row left out": without_last_row,
    "last columns left out": without_last_columns,
}
"""Cheats for outputs with at least one dimension."""
FLOAT32: dict[str, Callable[..., Any]] = {
    "everything in bf16": partial(in_dtype, torch.bfloat16),
    "inputs in TF32": partial(with_rounded_inputs, round_to_tf32),
}
"""Cheats on the precision of float32."""
BITS_16: dict[str, Callable[..., Any]] = {
    "inputs in fp8": partial(with_rounded_inputs, round_to_fp8),
    "inputs in fp8, scaled": partial(with_rounded_inputs, partial(round_to_fp8, scaled=True)),
}
"""Cheats on the precision of bf16 and fp16."""
