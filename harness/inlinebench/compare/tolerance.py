"""Decides which elements of an output are wrong. Pure functions on tensors, in chunks.

The rule: an output is right if it is the exact result for inputs that differ by no more than the tolerance (mixed
forward and backward error; N. Higham, "Accuracy and Stability of Numerical Algorithms", chapter 1). An element `out`
passes if

    |out - y| <= c * sigma + tol * |y| + a

where `y` is the oracle's element or the reference's, whichever is nearer, and

- `sigma` is the standard deviation of the oracle's element when each input is multiplied by `1 + delta * u`, with `u`
  uniform in [-1, 1] (`inlinebench.evaluation.correctness.sensitivity` measures it),
- `a` is the rounding that the element itself may have: `ULPS` units in the last place of the output's dtype,
  `OWN_ERRORS` times the largest error that the reference makes in this element, and the rounding of the oracle.

Nothing else in the rule depends on other elements. Most calls do not need it: `by_size` is a stricter bound for nearly
every element, and needs no oracle. Integers and booleans must be equal;
`inlinebench.evaluation.correctness.choices` judges those that are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import torch

from inlinebench.compare.elements import comparable, unravel
from inlinebench.results.result import elements_differ

CHUNK = 1 << 24
"""The number of elements that are compared at a time. float64 copies of three chunks take 400 MB."""
FACTOR = 4.0
"""`c`. Of 16 million elements with normal errors of standard deviation `sigma`, a thousand are beyond it. The errors of
honest solutions are smaller: docs/tolerance.md has a table."""
ULPS = 2
"""The units in the last place in `a`."""
OWN_ERRORS = 3.0
"""The factor of the reference's own error in `a`, the largest of up to 52 runs. Of normal errors, the largest of 52 is
about 2.5 standard deviations."""
ORACLE_ERROR = 8 * torch.finfo(torch.float64).eps
"""The rounding of the oracle, as a share of the output's size, but at most as of values of size 1: it can cancel, and
be 0, where the result is not."""
FLUSHED = torch.finfo(torch.float32).smallest_normal
"""Smaller numbers may be 0: `-use_fast_math` flushes them."""
SAMPLE = 1 << 16
"""About how many elements are looked at to find the typical size."""
LARGEST = torch.finfo(torch.float64).max

TOLERANCES = {
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
    torch.float64: 1e-8,
    torch.complex32: 1e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-8,
}
"""The default tolerance of each dtype, as users give it: the largest relative error of the output as a whole."""
COARSEST = 1e-1
"""The default tolerance of 8-bit floats and other floating-point dtypes that are not listed."""
PERTURBATION = {torch.float16: 0.5, torch.bfloat16: 0.5}
"""`delta` of the rule, as a share of the tolerance that users give. A quarter for other dtypes, so that `c * delta` is
that tolerance. With a quarter, honest sums of values that are rounded to 16 bits would fail."""
RELATIVE = {torch.float16: 0.5, torch.bfloat16: 0.5}
"""`tol` of the rule, as a share of the tolerance that users give; 1 for other dtypes, since sequential sums of many
terms of one sign have such errors."""
ROUNDINGS = 32
"""How many epsilons count as rounding of an input, where an integer depends on it; at most the default `delta`."""


def default_tolerance(dtype: torch.dtype) -> float:
    """Returns the default tolerance of a dtype: 0 for integers and booleans."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return TOLERANCES.get(dtype, COARSEST)


def perturbation_of(dtype: torch.dtype, tolerance: float) -> float:
    """Returns `delta` of the rule for an output of a dtype, given the tolerance that users see."""
    return tolerance * PERTURBATION.get(dtype, 1 / FACTOR)


def rounding_of(dtype: torch.dtype) -> float:
    """Returns the relative change of an input that counts as rounding."""
    return min(ROUNDINGS * torch.finfo(dtype).eps, perturbation_of(dtype, default_tolerance(dtype)))


@dataclass(frozen=True)
class Limit:
    """How far each element of an output may be from its expected value."""

    tolerance: float
    """The tolerance that users see. Errors are reported as shares of the limit, times this."""
    relative: float = 0.0
    """The share of the expected value."""
    ulp: float = 0.0
    """The units in the last place that count, times the epsilon of the output's dtype."""
    smallest: float = 0.0
    """The smallest normal number of that dtype, below which units in the last place no longer shrink."""
    floor: float = 0.0
    """What is added for all elements."""
    absolute: torch.Tensor | None = None
    """What is added for each element: flat, in float64."""
    bound: Limit | None = None
    """Elements within this limit pass as well."""

    def of(self, expected: torch.Tensor, where: slice | torch.Tensor) -> torch.Tensor:
        """Returns the limits of the elements with these expected values, at the flat indices `where`."""
        limit = expected.abs()
        # The spacing of floating-point numbers is the epsilon times the power of two at or below the number.
        exponent = torch.frexp(limit.clamp(min=self.smallest, max=LARGEST)).exponent if self.ulp else None
        limit.mul_(self.relative).add_(self.floor)
        if exponent is not None:
            limit += torch.ldexp(torch.full_like(limit, self.ulp / 2), exponent)
        if self.absolute is not None:
            limit += self.absolute[where]
        return limit if self.bound is None else torch.maximum(limit, self.bound.of(expected, where))


def by_size(reference: torch.Tensor, tolerance: float) -> Limit:
    """Returns the bound by the output's size, `tolerance * (size + |y|)`. Integers and booleans have a limit of 0."""
    if not (reference.is_floating_point() or reference.is_complex()):
        return Limit(0.0)
    return Limit(tolerance, relative=tolerance, floor=tolerance * typical_size(reference))


def by_sensitivity(
    dtype: torch.dtype, tolerance: float, absolute: torch.Tensor | None, size: float = 0.0
) -> Limit:
    """Returns the limit of the rule.

    Args:
        dtype: the output's dtype.
        tolerance: the tolerance that users see.
        absolute: `c * sigma` of each element, and the reference's error in `a`. None: 0.
        size: the root mean square of the oracle's output.
    """
    info = torch.finfo(dtype)
    relative = tolerance * RELATIVE.get(dtype, 1.0)
    return Limit(tolerance, relative, ULPS * info.eps, info.smallest_normal,
                 ORACLE_ERROR * min(size, 1.0) + FLUSHED, absolute)


def root_mean_square(values: torch.Tensor) -> float:
    """Returns the root mean square of the finite elements, or 0 if there are none."""
    squares = count = 0.0
    for _, (chunk,) in _chunks(values):
        norm, finite = _finite_norm(chunk)
        squares, count = min(squares + norm * norm, LARGEST), count + finite
    return math.sqrt(squares / count) if count else 0.0


def typical_size(values: torch.Tensor) -> float:
    """Returns the root mean square of the finite elements, or the median of their absolute values if that is smaller.

    Zeros do not count for the median. It is taken of a sample of a large tensor.
    """
    flat = values.reshape(-1)
    sizes = _widened(flat[:: max(1, flat.numel() // SAMPLE) | 1]).abs()
    sizes = sizes[torch.isfinite(sizes) & (sizes > 0)]
    return min(root_mean_square(values), float(sizes.median())) if sizes.numel() else 0.0


@dataclass(frozen=True)
class Comparison:
    """The result of comparing one output of one call."""

    count: int
    """The number of elements."""
    failed: int
    """The number of elements beyond the limit."""
    worst_error: float
    """The largest error as a share of the element's limit, times the tolerance; of integers, the largest difference.
    Infinite if only one side is finite."""
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
        return f"{elements_differ(self.failed, self.count)}; {where}expected {expected:.9g}, got {got:.9g}"


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
    share: torch.Tensor | None
    """The error of each element as a share of its limit. None for integers and booleans."""

    def errors(self, tolerance: float) -> torch.Tensor:
        """Returns the errors in float64: shares of the limits times the tolerance (1 if that is 0), or the differences
        of integers."""
        if self.share is not None:
            return self.share * (tolerance or 1.0)
        # At least 1 if elements differ, because large integers can round to the same float64.
        return torch.maximum((self.out.double() - self.exact.double()).abs(), self.bad.double())


def judge(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, limit: Limit,
    at: torch.Tensor | None = None,
) -> Iterator[Judged]:
    """Yields chunk after chunk of an output, with the elements that are wrong. All tensors have the same shape.

    This is the only place that decides which elements are wrong. `at` holds the flat indices of the elements in the
    whole output that `limit` is for; None: the tensors are the whole output. For integers and booleans, `limit` is
    ignored, and elements must be equal.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        for begin, (out, own) in _pieces(comparable(output), comparable(reference)):
            yield Judged(begin, out, own, own, out != own, None)
        return
    candidates = (reference,) if oracle is None else (oracle, reference)
    for begin, (out, *expected) in _chunks(output, *candidates):
        chunk = slice(begin, begin + out.numel())
        share = reduce(torch.minimum, [_share(out, value, limit, chunk if at is None else at[chunk])
                                       for value in expected])
        yield Judged(begin, out, expected[0], expected[-1], ~(share <= 1), share)


def compare(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, limit: Limit
) -> Comparison:
    """Compares one output with the reference and, if there is one, the oracle. All tensors have the same shape."""
    return compare_and_find(output, reference, oracle, limit)[0]


def compare_and_find(
    output: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, limit: Limit
) -> tuple[Comparison, torch.Tensor]:
    """Compares as `compare` does, and also returns the flat indices of the wrong elements."""
    tally, found = _Tally(limit.tolerance), [torch.zeros(0, dtype=torch.int64, device=output.device)]
    for judged in judge(output, reference, oracle, limit):
        if tally.add(judged):
            found.append(judged.bad.nonzero().flatten() + judged.begin)
    return tally.finish(output), torch.cat(found)


class _Tally:
    """Accumulates the comparison of one output over its chunks."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.failed, self.worst, self.max_abs = 0, 0.0, 0.0
        self.error_squares = self.oracle_squares = self.reference_squares = 0.0
        self.first: tuple[int, float, float] | None = None

    def add(self, judged: Judged) -> int:
        """Adds a chunk, and returns how many of its elements are wrong."""
        failures = int(judged.bad.sum())
        self.failed += failures
        if failures and self.first is None:
            index = int(judged.bad.to(torch.uint8).argmax())
            self.first = (judged.begin + index, _number(judged.exact[index]), _number(judged.out[index]))
        if judged.share is not None:
            self._measure(judged, judged.share)
        elif failures:
            self.worst = self.max_abs = max(self.worst, float(judged.errors(0.0).amax()))
        return failures

    def _measure(self, judged: Judged, share: torch.Tensor) -> None:
        self.worst = max(self.worst, float(judged.errors(self.tolerance).amax()) if share.numel() else 0.0)
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


def _share(out: torch.Tensor, expected: torch.Tensor, limit: Limit, where: slice | torch.Tensor) -> torch.Tensor:
    """Returns the errors as shares of the limits.

    NaN or an infinity on both sides gives 0. If the other side differs, the result is infinite.
    """
    share = (out - expected).abs().div_(limit.of(expected, where))
    if math.isfinite(float(share.amax())):  # the usual case: both sides are finite, and no division by 0
        return share
    share = torch.where(out == expected, 0.0, share)
    special = ~(torch.isfinite(out) & torch.isfinite(expected))
    return torch.where(special, torch.where(same(out, expected), 0.0, math.inf).to(share.dtype), share)


def same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns where values are equal or both NaN. For complex values, this must hold for both parts."""
    if one.is_complex():
        return same(one.real, other.real) & same(one.imag, other.imag)
    return (one == other) | (torch.isnan(one) & torch.isnan(other))


@dataclass(frozen=True)
class _Distance:
    """Sums over the elements that are finite on both sides."""

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
    norm = torch.linalg.vector_norm
    if expected.numel() == 0:
        return _Distance(0.0, 0.0, 0.0)
    if found is expected:
        size = float(norm(expected))
        return _Distance(size * size, 0.0, 0.0)
    error = found - expected
    size, distance, largest = torch.stack([norm(expected), norm(error), norm(error, math.inf)]).tolist()
    return _Distance(size * size, distance * distance, largest)


def _finite_norm(values: torch.Tensor) -> tuple[float, int]:
    """Returns the L2 norm of the finite elements, and their number."""
    norm = float(torch.linalg.vector_norm(values))
    if math.isfinite(norm):
        return norm, values.numel()
    finite = values[torch.isfinite(values)]
    return min(float(torch.linalg.vector_norm(finite)), math.sqrt(LARGEST)), finite.numel()


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Yields as `_pieces` does, but in float64 or complex128."""
    for begin, pieces in _pieces(*tensors):
        wide = {id(piece): _widened(piece) for piece in pieces}
        yield begin, tuple(wide[id(piece)] for piece in pieces)


def _widened(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.complex128 if values.is_complex() else torch.float64)


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
