"""Judges integers and booleans that differ from the reference's, such as indices of equal values.

They follow from floating-point values that a solution computes with other rounding errors. Two things are right:

- An index that selects an equal value. The oracle runs once more while the operators that select (`topk`, `sort`,
  `argmax` and their relatives) are observed. Where one of them gives the output, a differing index is right if the
  value that it selects differs by rounding from the one that the oracle selects in this place. Indices that an operator
  gives only once in a row may occur only once.
- A value that the reference gives for inputs that differ by rounding, as for comparisons and for counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inlinebench.compare.elements import comparable
from inlinebench.compare.tolerance import ULPS, same
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.compared import Compared, compared
from inlinebench.evaluation.correctness.runs import Runs
from inlinebench.evaluation.correctness.sensitivity import MOST_RUNS, Sensitivity
from inlinebench.problem.perturbation import Perturbation

ONE = ("argmax", "argmin", "max", "min", "median", "nanmedian", "kthvalue", "mode", "cummax", "cummin")
"""Operators that select a value for each place, perhaps the same one for several."""
DISTINCT = ("topk", "sort", "argsort", "msort")
"""Operators that select no value twice."""


@dataclass
class _Selection:
    """A call of an operator that selects values."""

    keys: torch.Tensor
    """The values that it selects from."""
    indices: torch.Tensor
    """The indices that it gives."""
    dimension: int | None
    """The dimension that the indices are of. None: of all elements."""
    distinct: bool
    """Whether no index occurs twice along that dimension."""


class _Observer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the calls of operators that select."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[_Selection] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]
        if name in (*ONE, *DISTINCT) and args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point():
            results = result if isinstance(result, tuple) else (result,)
            indices = next((each for each in results if each.dtype is torch.int64), None)
            if indices is not None:
                dimension = _dimension(func._schema, args, kwargs or {})
                self.found.append(_Selection(args[0].detach(), indices, dimension, name in DISTINCT))
        return result


def _dimension(schema: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
    """Returns the dimension along which an operator selects, or None if it selects from all elements."""
    given = {argument.name: argument.default_value for argument in schema.arguments}
    given |= {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)}
    given |= kwargs
    return None if given["dim"] is None else int(given["dim"])


class Choices:
    """Judges integers and booleans of the calls of one workload."""

    def __init__(self, sensitivity: Sensitivity) -> None:
        self._sensitivity = sensitivity

    def compared(
        self, call: CallCheck, name: str, what: str, got: torch.Tensor, expected: torch.Tensor
    ) -> Compared:
        """Compares a tensor of integers or booleans. `name` is what it is among the effects of the call.

        The result passes if each element is right, and else is about the elements that are not.
        """
        out, wanted = comparable(got), comparable(expected).clone()
        left = out != wanted
        if not bool(left.any()):
            return compared(what, got, expected, tolerance=0.0)
        if not self._sensitivity.may_perturb:
            return compared(what, got, expected, tolerance=0.0)
        runs = self._sensitivity.runs(call)
        right = _equal_keys(runs, name, out)
        if right is not None:
            left &= ~right
        else:
            for number in range(1, MOST_RUNS + 1):
                if not bool(left.any()):
                    break
                found = runs.perturbed(Perturbation(None, number))
                result = None if found is None else found.get(name)
                if result is not None and result.shape == out.shape:
                    left &= comparable(result).to(out.device) != out
        wanted[~left] = out[~left]
        return compared(what, got, wanted.view(expected.dtype), tolerance=0.0)


def _equal_keys(runs: Runs, name: str, out: torch.Tensor) -> torch.Tensor | None:
    """Returns which indices select a value that is right in its place, or None if no operator gives the output."""
    with _Observer() as in_oracle:
        exact = runs.exact()
    with _Observer() as in_reference:
        runs.own()
    if exact is None or name not in exact:
        return None
    for selection, own in zip(in_oracle.found, in_reference.found, strict=False):
        if (selection.indices.shape == out.shape and selection.keys.shape == own.keys.shape
                and torch.equal(selection.indices, exact[name].to(torch.int64))):
            return _right(selection, own.keys, out.to(torch.int64))
    return None


def _right(selection: _Selection, own: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Returns which of a solution's indices are right. `own` has the reference's keys in its own dtype.

    Keys in the reference's dtype have its rounding errors, and a solution's have others of this size.
    """
    keys, wanted, shape = selection.keys, selection.indices, indices.shape
    if selection.dimension is None:
        keys, own, wanted, indices = (tensor.reshape(-1) for tensor in (keys, own, wanted, indices))
    dimension = (selection.dimension or 0) % keys.dim()
    if indices.dim() < keys.dim():
        wanted, indices = wanted.unsqueeze(dimension), indices.unsqueeze(dimension)
    count, epsilon = keys.shape[dimension], torch.finfo(own.dtype).eps
    error = (own.double() - keys).abs().nan_to_num(0.0, 0.0, 0.0).amax(dimension, keepdim=True)
    chosen = keys.gather(dimension, indices.clamp(0, count - 1))
    best = keys.gather(dimension, wanted)
    near = (chosen - best).abs() <= 2 * error + ULPS * epsilon * best.abs()
    right = (indices >= 0) & (indices < count) & (near | same(chosen, best))
    if selection.distinct:
        right &= ~_repeated(indices, dimension)
    return right.reshape(shape)


def _repeated(indices: torch.Tensor, dimension: int) -> torch.Tensor:
    """Returns which indices occur more than once along a dimension."""
    ordered, at = indices.sort(dimension)
    size = indices.shape[dimension]
    as_before = ordered.narrow(dimension, 1, size - 1) == ordered.narrow(dimension, 0, size - 1)
    pad = torch.zeros_like(ordered.narrow(dimension, 0, 1), dtype=torch.bool)
    repeated = torch.cat([pad, as_before], dimension) | torch.cat([as_before, pad], dimension)
    return torch.zeros_like(repeated).scatter_(dimension, at, repeated)
