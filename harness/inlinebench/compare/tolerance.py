"""Compares outputs with the oracle and the reference, element by element, in chunks. Pure functions on tensors.

An element `out` passes if `|out - y| <= tol * (s + |y|) + a` for `y` the oracle or the reference in its own dtype,
where `s` is the root mean square of the oracle, `a` is `8 * e`, and `e` the root mean square of the reference's
difference from the oracle, all over finite elements. So matching PyTorch is right and being more exact than PyTorch is
right; an output of zeros can't hide under an absolute tolerance; one bad element can't hide in a big tensor; and an
output that is zero in theory and rounding in practice fails nobody. Integers and booleans are compared exactly.

Where most elements are clamped, that is zero or the least or the greatest value of the reference, these say nothing of
rounding: with `s1` and `e1` as `s` and `e`, over the other elements alone, `a` then is `8 * e1` if that is larger, but
no more than `tol * s1`. Where the least or the greatest value is there more than once, and the others are ten times
smaller, it is a mark, as for what is masked: `s` then is over the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch

from inlinebench.compare.elements import comparable, unravel

CHUNK = 1 << 24
"""Elements compared at a time: float64 copies of three such chunks take 400 MB."""

LARGEST = sys.float_info.max

MARKED = 0.1
"""The share of all elements' size under which the others' has to be for the least or greatest value to count as a mark
(-1e9 for what is masked), which says nothing of the others' size."""
ROUNDING_ALLOWANCE = 8.0
TOLERANCES = {
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
    torch.float64: 1e-8,
    torch.complex32: 1e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-8,
}
COARSEST = 1e-1
"""For 8-bit floats and whatever else has no row above."""


@dataclass(frozen=True)
class Scale:
    """`s`, `e`, `s1` and `e1` of one output, in the output's own unit; the last two are 0 where few are clamped."""

    oracle_rms: float
    reference_error_rms: float
    unclamped_rms: float = 0.0
    unclamped_error_rms: float = 0.0

    def allowance(self, tolerance: float) -> float:
        """`a` of the rule above."""
        among_unclamped = min(ROUNDING_ALLOWANCE * self.unclamped_error_rms, tolerance * self.unclamped_rms)
        return max(ROUNDING_ALLOWANCE * self.reference_error_rms, among_unclamped)

    def errors_of(self, own: Scale) -> tuple[float, float]:
        """The errors `e` and `e1` as shares of the sizes of another scale, the reference's own; 0 where it has none.

        Not of the oracle's, which may be exactly 0 where the reference is rounding.
        """
        return (self.reference_error_rms / own.oracle_rms if own.oracle_rms else 0.0,
                self.unclamped_error_rms / own.unclamped_rms if own.unclamped_rms else 0.0)

    def with_errors(self, shares: tuple[float, float]) -> Scale:
        """The same sizes with errors of these shares."""
        return replace(self, reference_error_rms=shares[0] * self.oracle_rms,
                       unclamped_error_rms=shares[1] * self.unclamped_rms)


@dataclass(frozen=True)
class Comparison:
    """One output of one call.

    `failed` counts elements beyond the tolerance. `worst_error` is the largest `(|out - y| - a) / (s + |y|)` of any
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
    """The scale of a floating output; both tensors of one shape, any dtype and layout."""
    ends = _ends(reference)
    every, counts = _Sum(), [0] * len(ends)
    for _, (exact, own) in _chunks(oracle, reference):
        every.add(_distance(own, exact))
        found = torch.stack([(own == end).sum() for end in ends]).tolist()
        counts = [before + more for before, more in zip(counts, found, strict=True)]
    size = every.size
    if marks := [end for end, count in zip(ends, counts, strict=True) if end != 0 and count > 1]:
        unmarked = _over_others(oracle, reference, marks).size
        size = unmarked if 0 < unmarked < MARKED * size else size
    if 2 * sum(counts) <= every.count:  # nearly always
        return Scale(size, every.error)
    others = _over_others(oracle, reference, ends)
    return Scale(size, every.error, others.size, others.error)


def _over_others(oracle: torch.Tensor, reference: torch.Tensor, ends: Sequence[float]) -> _Sum:
    """Over the elements where the reference has none of these values."""
    others = _Sum()
    for _, (exact, own) in _chunks(oracle, reference):
        left = ~reduce(torch.logical_or, [own == end for end in ends])
        others.add(_distance(own[left], exact[left]))
    return others


def _ends(reference: torch.Tensor) -> tuple[float, ...]:
    """What a clamp leaves: zero, and the least and the greatest value where there is such a thing."""
    if reference.is_complex() or reference.numel() == 0:
        return (0.0,)
    values = reference.float() if reference.element_size() == 1 else reference  # few operations know 8-bit floats
    return tuple(dict.fromkeys((0.0, float(values.amin()), float(values.amax()))))


class _Sum:
    """Distances added up, and their root mean squares."""

    def __init__(self) -> None:
        self.count, self._squares, self._error_squares = 0, 0.0, 0.0

    def add(self, distance: _Distance) -> None:
        self.count += distance.count
        self._squares += distance.expected_squares
        self._error_squares += distance.error_squares

    @property
    def size(self) -> float:
        return math.sqrt(self._squares / self.count) if self.count else 0.0

    @property
    def error(self) -> float:
        return math.sqrt(self._error_squares / self.count) if self.count else 0.0


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
        allowance, size = scale.allowance(tolerance), scale.oracle_rms
        scaled = reduce(torch.minimum, [_scaled_error(out, value, size, allowance) for value in expected])
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
        self.worst = max(self.worst, float(scaled.amax()) if scaled.numel() else 0.0)
        distance = _distance(judged.out, judged.exact)
        self.max_abs = max(self.max_abs, distance.largest)
        self.error_squares += distance.error_squares
        self.oracle_squares += distance.expected_squares
        self.reference_squares += _distance(judged.own, judged.exact).error_squares

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


def _scaled_error(out: torch.Tensor, expected: torch.Tensor, size: float, allowance: float) -> torch.Tensor:
    """`(|out - y| - a) / (s + |y|)`, at least 0; 0 where NaN or infinity match in place, infinity where they don't."""
    error = (out - expected).abs().sub_(allowance).clamp_(min=0)
    scaled = error / expected.abs().add_(size)
    if bool(torch.isfinite(scaled).all()):  # then both sides are, and nothing is divided by 0: nearly always
        return scaled
    scaled = torch.where(error == 0, 0.0, scaled)
    special = ~(torch.isfinite(out) & torch.isfinite(expected))
    matches = _same(out, expected)
    return torch.where(special, torch.where(matches, 0.0, math.inf).to(scaled.dtype), scaled)


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where values are equal or both NaN, and so both parts of a complex one."""
    if one.is_complex():
        return _same(one.real, other.real) & _same(one.imag, other.imag)
    return (one == other) | (torch.isnan(one) & torch.isnan(other))


@dataclass(frozen=True)
class _Distance:
    """How far values lie from expected ones, over the elements that are finite on both sides: their number, sums of
    squares, and the largest difference."""

    count: int
    expected_squares: float
    error_squares: float
    largest: float


def _distance(found: torch.Tensor, expected: torch.Tensor) -> _Distance:
    """Of flat tensors in float64 or complex128."""
    distance = _plain_distance(found, expected)
    if math.isfinite(distance.expected_squares + distance.error_squares):
        return distance
    finite = torch.isfinite(found) & torch.isfinite(expected)
    distance = _plain_distance(found[finite], expected[finite])
    # Squares of values beyond 1e154 can't be told apart; each element's own size bounds its error then.
    return replace(distance, expected_squares=min(distance.expected_squares, LARGEST),
                   error_squares=min(distance.error_squares, LARGEST))


def _plain_distance(found: torch.Tensor, expected: torch.Tensor) -> _Distance:
    """All elements count. The device is waited for once."""
    count, norm = expected.numel(), torch.linalg.vector_norm
    if count == 0:
        return _Distance(0, 0.0, 0.0, 0.0)
    if found is expected:
        size = float(norm(expected))
        return _Distance(count, size * size, 0.0, 0.0)
    error = found - expected
    size, distance, largest = torch.stack([norm(expected), norm(error), norm(error, math.inf)]).tolist()
    return _Distance(count, size * size, distance * distance, largest)


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """The same elements of each tensor in float64 or complex128, as `_pieces` gives them."""
    kind = torch.complex128 if tensors[-1].is_complex() else torch.float64
    for begin, pieces in _pieces(*tensors):
        wide = {id(piece): piece.to(kind) for piece in pieces}
        yield begin, tuple(wide[id(piece)] for piece in pieces)


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """The same elements of each tensor, flat, a chunk at a time, with the flat index of the first. One tensor that is
    given twice comes out as one."""
    flats = {id(tensor): tensor.reshape(-1) for tensor in tensors}
    for begin in range(0, tensors[0].numel(), CHUNK):
        pieces = {name: flat[begin : begin + CHUNK] for name, flat in flats.items()}
        yield begin, tuple(pieces[id(tensor)] for tensor in tensors)


def _number(value: torch.Tensor) -> float:
    return float(value.real) if value.is_complex() else float(value)
