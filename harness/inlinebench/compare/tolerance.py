"""Compares outputs with the oracle and the reference, element by element and in chunks. Pure functions on tensors.

An element `out` passes if `|out - y| <= tol * (s + |y|) + a`, where `y` is the oracle's element or the reference's:

- `s` is the root mean square of the oracle,
- `e` is the root mean square of the reference's difference from the oracle,
- `a` is `8 * e`, the allowance for the reference's own rounding.

Only finite elements count for `s` and `e`. Integers and booleans must be equal.

With this rule, an output passes if it matches PyTorch or is more accurate than PyTorch. An output of zeros cannot pass
through an absolute tolerance, and one wrong element fails even in a large tensor. An output that is zero in theory but
rounding error in practice does not fail an honest solution.

There are three exceptions:

- Clamped elements are those equal to zero or to the smallest or largest value of the reference. If most elements are
  clamped, they say nothing about rounding. With `s1` and `e1` defined as `s` and `e`, but over the other elements, `a`
  becomes `8 * e1` if that is larger, but at most `tol * s1`.
- On inputs with a few large values, the largest elements of the oracle do not count for `s`.
- If the smallest or largest value occurs more than once and the root mean square of the other elements is under a tenth
  of `s`, the value is a mark, such as -1e9 for masked elements. Then `s` is over the other elements.
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
"""The number of elements that are compared at a time. float64 copies of three chunks take 400 MB."""

LARGEST = sys.float_info.max

MARKED = 0.1
"""The smallest or largest value is a mark if the root mean square of the other elements is below this share of `s`."""
LARGEST_SHARE, SAMPLE = 1 / 64, 1 << 20
"""The share of the elements that count as the largest, and about how many elements are looked at to find it."""
ROUNDING_ALLOWANCE = 8.0
"""The factor in `a = 8 * e`."""
TOLERANCES = {
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
    torch.float64: 1e-8,
    torch.complex32: 1e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-8,
}
"""The default tolerance (`tol`) of each dtype."""
COARSEST = 1e-1
"""The default tolerance of 8-bit floats and other floating-point dtypes that are not listed."""


@dataclass(frozen=True)
class Scale:
    """The scale of one output, in the unit of its elements (see the rule in the module's docstring)."""

    oracle_rms: float
    """`s`."""
    reference_error_rms: float
    """`e`."""
    unclamped_rms: float = 0.0
    """`s1`. 0 if few elements are clamped."""
    unclamped_error_rms: float = 0.0
    """`e1`. 0 if few elements are clamped."""

    def allowance(self, tolerance: float) -> float:
        """Returns the allowance for the reference's own rounding, `a`."""
        among_unclamped = min(ROUNDING_ALLOWANCE * self.unclamped_error_rms, tolerance * self.unclamped_rms)
        return max(ROUNDING_ALLOWANCE * self.reference_error_rms, among_unclamped)

    def errors_of(self, own: Scale) -> tuple[float, float]:
        """Returns `e` and `e1` as shares of the sizes in `own`, the reference's own scale. A share of size 0 is 0.

        The oracle's sizes are unsuitable, because the oracle can be exactly 0 where the reference has rounding errors.
        """
        return (self.reference_error_rms / own.oracle_rms if own.oracle_rms else 0.0,
                self.unclamped_error_rms / own.unclamped_rms if own.unclamped_rms else 0.0)

    def with_errors(self, shares: tuple[float, float]) -> Scale:
        """Returns a scale of the same sizes, with errors that are these shares of them."""
        return replace(self, reference_error_rms=shares[0] * self.oracle_rms,
                       unclamped_error_rms=shares[1] * self.unclamped_rms)


@dataclass(frozen=True)
class Comparison:
    """The result of comparing one output of one call."""

    count: int
    """The number of elements."""
    failed: int
    """The number of elements beyond the tolerance."""
    worst_error: float
    """The largest `(|out - y| - a) / (s + |y|)` of any element, for the nearer of oracle and reference. Infinite if
    only one side is finite."""
    max_abs_error: float
    """The largest absolute error against the oracle, or the reference if there is none."""
    rel_l2_error: float | None
    """The relative L2 error over elements that are finite on both sides. None if there are none."""
    reference_rel_l2_error: float | None
    """The reference's relative L2 error against the oracle, over the same kind of elements."""
    first_failure: tuple[tuple[int, ...], float, float] | None
    """The index of the first wrong element, its expected value and its value."""

    @property
    def passed(self) -> bool:
        """Whether no element failed."""
        return self.failed == 0

    def describe(self) -> str:
        """Describes a failure: how many elements are wrong, and the first of them."""
        assert self.first_failure is not None
        index, expected, got = self.first_failure
        where = f"first at {list(index)}: " if index else ""
        return (f"{self.failed} of {self.count} elements differ ({self.failed / self.count:.3g} of all); "
                f"{where}expected {expected:.9g}, got {got:.9g}")


def default_tolerance(dtype: torch.dtype) -> float:
    """Returns the default tolerance of a dtype: 0 for integers and booleans."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return TOLERANCES.get(dtype, COARSEST)


def measure_scale(oracle: torch.Tensor, reference: torch.Tensor, *, without_largest: bool = False) -> Scale:
    """Returns the scale of a floating-point or complex output. The tensors have one shape and any dtype and layout.

    `without_largest` leaves the largest elements out of `s`, for inputs of which a few values are much larger than the
    others: elements that these do not reach are then compared at their own scale.
    """
    if without_largest:
        scale, size = measure_scale(oracle, reference), _size_without_largest(oracle)
        return replace(scale, oracle_rms=min(size, scale.oracle_rms)) if size else scale
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
    if 2 * sum(counts) <= every.count:  # the usual case
        return Scale(size, every.error)
    others = _over_others(oracle, reference, ends)
    return Scale(size, every.error, others.size, others.error)


def _size_without_largest(oracle: torch.Tensor) -> float:
    """Returns the root mean square of the finite elements, without the largest ones."""
    sizes = oracle.reshape(-1)[:: max(1, oracle.numel() // SAMPLE)].abs().double()
    sizes = sizes[torch.isfinite(sizes)]
    kept = sizes.sort().values[: sizes.numel() - math.ceil(LARGEST_SHARE * sizes.numel())]
    return math.sqrt(float(kept.square().mean())) if kept.numel() else 0.0


def _over_others(oracle: torch.Tensor, reference: torch.Tensor, ends: Sequence[float]) -> _Sum:
    """Sums up the elements where the reference has none of the values `ends`."""
    others = _Sum()
    for _, (exact, own) in _chunks(oracle, reference):
        left = ~reduce(torch.logical_or, [own == end for end in ends])
        others.add(_distance(own[left], exact[left]))
    return others


def _ends(reference: torch.Tensor) -> tuple[float, ...]:
    """Returns the values that count as clamped: zero, and the smallest and largest value of a real tensor."""
    if reference.is_complex() or reference.numel() == 0:
        return (0.0,)
    values = reference.float() if reference.element_size() == 1 else reference  # amin does not support 8-bit floats
    return tuple(dict.fromkeys((0.0, float(values.amin()), float(values.amax()))))


class _Sum:
    """Adds up distances, and returns their root mean squares."""

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
    """A chunk of elements of an output, and which of them are wrong. All tensors are 1-d and of the same size.

    Floating-point and complex values are in float64 or complex128. Other values keep their dtype, but bool becomes
    uint8.
    """

    begin: int
    """The flat index of the first element."""
    out: torch.Tensor
    """The output's values."""
    exact: torch.Tensor
    """The oracle's values, or the reference's if there is no oracle."""
    own: torch.Tensor
    """The reference's values."""
    bad: torch.Tensor
    """Which elements are wrong (bool)."""
    scaled: torch.Tensor | None
    """The error of each element that the tolerance bounds. None for integers and booleans."""

    def errors(self) -> torch.Tensor:
        """Returns the error of each element in float64: scaled for floating-point values, else the difference."""
        if self.scaled is not None:
            return self.scaled
        # At least 1 if elements differ, because large integers can round to the same float64.
        return torch.maximum((self.out.double() - self.exact.double()).abs(), self.bad.double())


def judge(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, tolerance: float, scale: Scale
) -> Iterator[Judged]:
    """Yields chunk after chunk of an output, with the elements that are wrong. All tensors have the same shape.

    This is the only place that decides which elements are wrong. For integers and booleans, tolerance and scale are
    ignored, and elements must be equal.
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
    """Compares one output with the reference and, if there is one, the oracle. All tensors have the same shape."""
    tally = _Tally()
    for judged in judge(output, reference, oracle, tolerance, scale):
        tally.add(judged)
    return tally.finish(output)


class _Tally:
    """Accumulates the comparison of one output over its chunks."""

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
    """Returns `(|out - y| - a) / (s + |y|)`, at least 0.

    NaN or an infinity on both sides gives 0. If the other side differs, the result is infinite.
    """
    error = (out - expected).abs().sub_(allowance).clamp_(min=0)
    scaled = error / expected.abs().add_(size)
    if bool(torch.isfinite(scaled).all()):  # the usual case: both sides are finite, and no division by 0
        return scaled
    scaled = torch.where(error == 0, 0.0, scaled)
    special = ~(torch.isfinite(out) & torch.isfinite(expected))
    matches = _same(out, expected)
    return torch.where(special, torch.where(matches, 0.0, math.inf).to(scaled.dtype), scaled)


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns where values are equal or both NaN. For complex values, this must hold for both parts."""
    if one.is_complex():
        return _same(one.real, other.real) & _same(one.imag, other.imag)
    return (one == other) | (torch.isnan(one) & torch.isnan(other))


@dataclass(frozen=True)
class _Distance:
    """Sums over the elements that are finite on both sides."""

    count: int
    """The number of elements."""
    expected_squares: float
    """The sum of squares of the expected values."""
    error_squares: float
    """The sum of squares of the differences."""
    largest: float
    """The largest absolute difference."""


def _distance(found: torch.Tensor, expected: torch.Tensor) -> _Distance:
    """Returns the distance of 1-d tensors in float64 or complex128, over finite elements."""
    distance = _plain_distance(found, expected)
    if math.isfinite(distance.expected_squares + distance.error_squares):
        return distance
    finite = torch.isfinite(found) & torch.isfinite(expected)
    distance = _plain_distance(found[finite], expected[finite])
    # Squares of values above 1e154 overflow. The term `tol * |y|` of each element still bounds its error.
    return replace(distance, expected_squares=min(distance.expected_squares, LARGEST),
                   error_squares=min(distance.error_squares, LARGEST))


def _plain_distance(found: torch.Tensor, expected: torch.Tensor) -> _Distance:
    """Returns the distance over all elements. Waits for the device only once."""
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
    """Yields as `_pieces` does, but in float64 or complex128."""
    kind = torch.complex128 if tensors[-1].is_complex() else torch.float64
    for begin, pieces in _pieces(*tensors):
        wide = {id(piece): piece.to(kind) for piece in pieces}
        yield begin, tuple(wide[id(piece)] for piece in pieces)


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Yields the flat index of each chunk's first element, and the chunk of each tensor (1-d).

    A tensor that is given twice is split only once, so its chunks are the same object.
    """
    flats = {id(tensor): tensor.reshape(-1) for tensor in tensors}
    for begin in range(0, tensors[0].numel(), CHUNK):
        pieces = {name: flat[begin : begin + CHUNK] for name, flat in flats.items()}
        yield begin, tuple(pieces[id(tensor)] for tensor in tensors)


def _number(value: torch.Tensor) -> float:
    return float(value.real) if value.is_complex() else float(value)
