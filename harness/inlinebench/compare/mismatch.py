"""Describes where and how a wrong tensor differs from the expected one. Pure functions on tensors.

They need memory for a comparison and for one or two bool masks of the tensor's size.
"""

from __future__ import annotations

import math

import torch

from inlinebench.compare import tolerance as compare
from inlinebench.compare.elements import comparable, text_of, unravel
from inlinebench.compare.patterns import ComparedValues, what_values
from inlinebench.compare.regions import where
from inlinebench.compare.tolerance import Limit
from inlinebench.results.result import MOST_FIRST, Element, Mismatch


def find_mismatch(
    what: str, output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, *, limit: Limit,
) -> Mismatch | None:
    """Returns the record of a tensor that failed `compare` with the same arguments. `what` names the tensor.

    Returns None if nothing differs anymore. On a GPU, work that a solution left behind may have changed the tensor.
    """
    wrong = torch.empty(output.shape, dtype=torch.bool, device=output.device)
    flat, first, worst, largest = wrong.view(-1), list[int](), 0, -1.0
    for judged in compare.judge(output, reference, oracle, limit):
        flat[judged.begin : judged.begin + judged.bad.numel()] = judged.bad
        if not bool(judged.bad.any()):
            continue
        if len(first) < MOST_FIRST:
            first += [judged.begin + int(at) for at in judged.bad.nonzero().flatten()[: MOST_FIRST - len(first)]]
        # NaN counts as infinite, so that no other error exceeds it.
        errors = torch.where(judged.bad, judged.errors(limit.tolerance).nan_to_num(nan=math.inf, posinf=math.inf), -1.0)
        at = int(errors.argmax())
        if float(errors[at]) > largest:
            worst, largest = judged.begin + at, float(errors[at])
    if not first:
        return None
    compared = ComparedValues(output, reference, oracle, limit, wrong)
    return Mismatch(
        what=what, dtype=str(reference.dtype).removeprefix("torch."), shape=tuple(output.shape),
        count=output.numel(), failed=int(flat.sum()), first=tuple(_element(compared, at) for at in first),
        worst=_element(compared, worst), tolerance=limit.tolerance, worst_error=_beyond(limit.tolerance, largest),
        patterns=tuple(filter(None, (where(wrong), what_values(compared), _where_nan(compared)))),
    )


def _beyond(tolerance: float, error: float) -> float | None:
    """Returns the error of a wrong element, which is beyond the tolerance whatever its last bit, or None."""
    return max(error, math.nextafter(tolerance, math.inf)) if math.isfinite(error) else None


def _where_nan(compared: ComparedValues) -> str | None:
    """Describes how many wrong values are NaN and where, if only some are. They may have a different cause."""
    if not (compared.output.is_floating_point() or compared.output.is_complex()):
        return None
    nan = (compared.output != compared.output).logical_and_(compared.wrong)
    count = int(nan.sum())
    if count in (0, int(compared.wrong.sum())):
        return None
    location = where(nan)
    return f"{count} of the wrong values {'is' if count == 1 else 'are'} NaN" + (f": {location}" if location else "")


def _element(compared: ComparedValues, flat: int) -> Element:
    index = unravel(flat, compared.output.shape)
    exact = compared.reference if compared.oracle is None else compared.oracle
    dtype = compared.output.dtype
    expected, got = (comparable(tensor)[index] for tensor in (exact, compared.output))
    return Element(index, text_of(expected, dtype), text_of(got, dtype))
