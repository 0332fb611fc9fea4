"""Compares outputs with the oracle and the reference, element by element, in chunks. Pure functions on tensors.

An element `out` passes if `|out - y| <= tol * (s + |y|) + 8 * e` for `y` the oracle or the reference in its own dtype,
where `s` is the root mean square of the oracle and `e` that of the reference's difference from it, both over finite
elements. So matching PyTorch is right and being more exact than PyTorch is right; an output of zeros can't hide under
an absolute tolerance; one bad element can't hide in a big tensor; and an output that is zero in theory and rounding
in practice fails nobody. Integers and booleans are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.judge.elements import comparable, unravel

CHUNK = 1 << 24
"""Elements compared at a time: float64 copies of three such chunks take 400 MB."""

ROUNDING_ALLOWANCE = 8.0
TOLERANCES = {
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
    torch.float64: 1e-8,
    torch.complex64: 1e-4,
    torch.complex128: 1e-8,
}
COARSEST = 1e-1
"""For 8-bit floats and whatever else has no row above."""


@dataclass(frozen=True)
class Scale:
    """`s` and `e` of one output, in the output's own unit."""

    oracle_rms: float
    reference_error_rms: float

    @property
    def allowance(self) -> float:
        return ROUNDING_ALLOWANCE * self.reference_error_rms


@dataclass(frozen=True)
class Comparison:
    """One output of one call.

    `failed` counts elements beyond the tolerance. `worst_error` is the largest `(|out - y| - 8e) / (s + |y|)` of any
    element, against the nearer of oracle and reference, and infinite where one side alone is finite. `first_failure`
    is the index of the first failing element with what was expected and what came. The relative errors are over
    elements that are finite on both sides, and None where there are none.
    """

    count: int
    failed: int
    worst_error: float
    max_abs_error: float
    rel_l2_error: float | None
    reference_rel_l2_error: float | None
    first_failure: tuple[tuple[int, ...], float, float] | None

    @property
    def passed(self) -> bool:
        return self.failed == 0

    def describe(self) -> str:
        """A failure in words: how many elements, and the first of them."""
        assert self.first_failure is not None
        index, expected, got = self.first_failure
        where = f"at {list(index)}" if index else "there"
        return (f"{self.failed} of {self.count} elements differ ({self.failed / self.count:.3g} of all); "
                f"first {where}: expected {expected:.9g}, got {got:.9g}")


def default_tolerance(dtype: torch.dtype) -> float:
    """The tolerance of a dtype; 0 for integers and booleans."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return TOLERANCES.get(dtype, COARSEST)


def measure_scale(oracle: torch.Tensor, reference: torch.Tensor) -> Scale:
    """`s` and `e` of a floating output; both tensors of one shape, any dtype and layout."""
    count, total, error_total = 0, 0.0, 0.0
    for _, (exact, own) in _chunks(oracle, reference):
        finite = torch.isfinite(exact) & torch.isfinite(own)
        zero = torch.zeros((), dtype=exact.dtype, device=exact.device)
        count += int(finite.sum())
        total += _square_sum(torch.where(finite, exact, zero))
        error_total += _square_sum(torch.where(finite, own - exact, zero))
    if count == 0:
        return Scale(0.0, 0.0)
    return Scale(math.sqrt(total / count), math.sqrt(error_total / count))


@dataclass(frozen=True)
class Judged:
    """Some elements of an output, flat, from the flat index `begin` on, and which of them are `bad`.

    `exact` is the oracle's, where there is one, and `own` the reference's. Floating values are in float64 or
    complex128, all others in the output's dtype, with the bytes of booleans.
    """

    begin: int
    out: torch.Tensor
    exact: torch.Tensor
    own: torch.Tensor
    bad: torch.Tensor
    scaled: torch.Tensor | None

    def errors(self) -> torch.Tensor:
        """What the tolerance bounds, in float64: scaled errors, or plain differences where elements must be equal."""
        if self.scaled is not None:
            return self.scaled
        # At least 1 where they differ, even where both round to the same float64.
        return torch.maximum((self.out.double() - self.exact.double()).abs(), self.bad.double())


def judge(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: float, scale: Scale
) -> Iterator[Judged]:
    """Judges the elements of an output, a chunk at a time: the one place that says which are bad. All of one shape.

    Where the dtype is not floating, the elements must be equal, and tolerance and scale don't matter.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        for begin, (out, own) in _pieces(comparable(output), comparable(reference)):
            yield Judged(begin, out, own, own, out != own, None)
        return
    candidates = (reference,) if oracle is None else (oracle, reference)
    for begin, (out, *expected) in _chunks(output, *candidates):
        scaled = torch.stack([_scaled_error(out, value, scale) for value in expected]).amin(0)
        yield Judged(begin, out, expected[0], expected[-1], ~(scaled <= tolerance), scaled)


def compare(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: float, scale: Scale
) -> Comparison:
    """Compares one output with the reference and, if there is one, the oracle; all of one shape."""
    tally = _Tally()
    for judged in judge(output, reference, oracle, tolerance, scale):
        tally.add(judged)
    return tally.finish(output)


class _Tally:
    """What has been seen of an output so far."""

    def __init__(self) -> None:
        self.failed, self.worst, self.max_abs = 0, 0.0, 0.0
        self.error_squares = self.oracle_squares = self.reference_squares = 0.0
        self.first: tuple[int, float, float] | None = None

    def add(self, judged: Judged) -> None:
        failures = int(judged.bad.sum())
        self.failed += failures
        if failures and self.first is None:
            index = int(judged.bad.to(torch.uint8).argmax())
            self.first = (judged.begin + index, _number(judged.exact[index]), _number(judged.out[index]))
        if judged.scaled is not None:
            self._measure(judged, judged.scaled)
        elif failures:
            self.worst = self.max_abs = max(self.worst, float(judged.errors().amax()))

    def _measure(self, judged: Judged, scaled: torch.Tensor) -> None:
        out, exact, own = judged.out, judged.exact, judged.own
        finite = torch.isfinite(out) & torch.isfinite(exact)
        difference = torch.where(finite, out - exact, torch.zeros((), dtype=out.dtype, device=out.device)).abs()
        self.worst = max(self.worst, float(scaled.amax()) if scaled.numel() else 0.0)
        self.max_abs = max(self.max_abs, float(difference.amax()) if difference.numel() else 0.0)
        self.error_squares += _square_sum(difference)
        self.oracle_squares += _square_sum(torch.where(finite, exact, torch.zeros_like(exact)))
        finite = torch.isfinite(own) & torch.isfinite(exact)
        self.reference_squares += _square_sum(torch.where(finite, own - exact, torch.zeros_like(exact)))

    def finish(self, output: torch.Tensor) -> Comparison:
        scale = math.sqrt(self.oracle_squares)
        first = None
        if self.first is not None:
            flat, expected, got = self.first
            first = (unravel(flat, output.shape), expected, got)
        return Comparison(
            count=output.numel(),
            failed=self.failed,
            worst_error=self.worst,
            max_abs_error=self.max_abs,
            rel_l2_error=math.sqrt(self.error_squares) / scale if scale else None,
            reference_rel_l2_error=math.sqrt(self.reference_squares) / scale if scale else None,
            first_failure=first,
        )


def _scaled_error(out: torch.Tensor, expected: torch.Tensor, scale: Scale) -> torch.Tensor:
    """`(|out - y| - 8e) / (s + |y|)`, at least 0; 0 where NaN or infinity match in place, infinity where they don't."""
    error = ((out - expected).abs() - scale.allowance).clamp_(min=0)
    unit = scale.oracle_rms + expected.abs()
    scaled = torch.where(error == 0, 0.0, error / unit)
    both_nan = torch.isnan(out) & torch.isnan(expected)
    special = ~(torch.isfinite(out) & torch.isfinite(expected))
    matches = (out == expected) | both_nan
    return torch.where(special, torch.where(matches, 0.0, math.inf).to(scaled.dtype), scaled)


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """The same elements of each tensor in float64 or complex128, as `_pieces` gives them."""
    kind = torch.complex128 if tensors[-1].is_complex() else torch.float64
    for begin, pieces in _pieces(*tensors):
        yield begin, tuple(piece.to(kind) for piece in pieces)


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """The same elements of each tensor, flat, a chunk at a time, with the flat index of the first."""
    flats = [tensor.reshape(-1) for tensor in tensors]
    for begin in range(0, flats[0].numel(), CHUNK):
        yield begin, tuple(flat[begin : begin + CHUNK] for flat in flats)


def _square_sum(tensor: torch.Tensor) -> float:
    return float(tensor.abs().square().sum())


def _number(value: torch.Tensor) -> float:
    return float(value.real) if value.is_complex() else float(value)
