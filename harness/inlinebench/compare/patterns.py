"""What the wrong values of an output have in common, in words: at most one sentence, and only where it holds.

A claim is made where it holds for at least 99 % of all wrong elements. What might be claimed comes from a sample of
these; what is said has been counted over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch

from inlinebench.compare import tolerance as compare
from inlinebench.compare.elements import take, text_of, widen
from inlinebench.compare.regions import Axis, axes

SHARE = 0.99
FEWEST = 16
"""Wrong elements that it takes for claims that fewer might fulfil by accident."""
SAMPLE = 4096
SLACK = 1e-3
"""How far off a constant factor or offset may be, as a share of itself; more where the dtype is coarser than that."""
EXPLAINED = 0.25
"""The share of an element's error that a factor or an offset may leave over."""
JUDGES_BYTES, ALLOCATORS_BYTES = (0xFF,), (0xFF, 0x7F)
"""Of memory that nobody wrote to: the judge's and, with CUDA on the CPU, that of solutions and their kernels."""


@dataclass(frozen=True)
class Compared:
    """A tensor that failed and what it was compared with, all of one shape; `wrong` tells which elements differ."""

    output: torch.Tensor
    reference: torch.Tensor
    oracle: torch.Tensor | None
    tolerance: float
    scale: compare.Scale
    wrong: torch.Tensor


@dataclass(frozen=True)
class _Part:
    """Some of the wrong elements: their flat indices, and what came and was expected there, in a wide type."""

    at: torch.Tensor
    out: torch.Tensor
    expected: torch.Tensor


@dataclass(frozen=True)
class _Claim:
    """`test` gives for each element whether the claim holds, and whether it can be asked of it (None: of each).

    `those` says of which ones it is asked, where that isn't all. `fewest` wrong elements are needed for it.
    """

    words: str
    test: Callable[[_Part], tuple[torch.Tensor, torch.Tensor | None]]
    fewest: int = FEWEST
    those: str = ""


def what_values(compared: Compared) -> str | None:
    """One sentence about the wrong values, None where there is nothing to say."""
    sample = _sample(compared)
    for claim in _claims(compared, sample):
        if _holds(claim, [sample]) is not None:
            exactly = _holds(claim, _parts(compared))
            if exactly is not None:
                return f"{'every' if exactly else 'nearly every'} wrong value{claim.those} {claim.words}"
    return None


def _holds(claim: _Claim, parts: Iterable[_Part]) -> bool | None:
    """Whether a claim holds exactly; None where it doesn't hold."""
    asked = held = 0
    for part in parts:
        holds, applies = claim.test(part)
        asked += holds.numel() if applies is None else int(applies.sum())
        held += int((holds if applies is None else holds & applies).sum())
    return held == asked if asked >= claim.fewest and held >= SHARE * asked else None


def _claims(compared: Compared, sample: _Part) -> Iterator[_Claim]:
    """What might be said, the plainest first."""
    dtype = compared.output.dtype
    real = dtype.is_floating_point
    surely = 1 if real or dtype.is_complex else FEWEST
    yield _Claim("has the bits of memory that nobody wrote to: perhaps the output isn't written there, or is computed "
                 "from such memory", lambda part: (_is_unwritten(compared.output, part.at), None), surely)
    yield _Claim("is NaN", lambda part: (part.out != part.out, None), surely)
    yield _Claim(f"is {'false' if dtype is torch.bool else 0}", lambda part: (part.out == 0, None), surely)
    if not dtype.is_complex:
        value = sample.out.mode().values
        yield _Claim(f"is {text_of(value, dtype)}", lambda part: (part.out == value, None))
    if not dtype.is_complex and dtype is not torch.bool:
        yield from _arithmetic_claims(sample, torch.finfo(dtype).eps if real else 0.0)
    if compared.output.dim() > 1:
        yield _transposed(compared)
    for axis in axes(compared.output.dim()) if compared.output.dim() else ():
        yield from (_shifted(compared, axis, step) for step in (-1, 1))
    if dtype in (torch.float32, torch.float64):
        yield from (_rounded(sample, coarser) for coarser in (torch.bfloat16, torch.float16))


def _arithmetic_claims(sample: _Part, epsilon: float) -> Iterator[_Claim]:
    """The other sign, a constant factor, a constant offset. `epsilon` is the dtype's own."""
    out, expected = sample.out.double(), sample.expected.double()
    yield _Claim("is what is expected with the other sign", lambda part: (_is_factor(part, -1.0, epsilon), None))
    digits = 3 if epsilon > SLACK / 10 else 6
    usable = torch.isfinite(out) & torch.isfinite(expected)
    if bool((usable & (expected != 0)).any()):
        factor = float((out / expected)[usable & (expected != 0)].median())
        words = f"is {factor:.{digits}g} times what is expected"
        yield _Claim(words, lambda part: (_is_factor(part, factor, epsilon), None))
    if bool(usable.any()):
        offset = float((out - expected)[usable].median())
        words = f"is what is expected {'plus' if offset > 0 else 'minus'} {abs(offset):.{digits}g}"
        yield _Claim(words, lambda part: (_is_offset(part, offset, epsilon), None))


def _is_factor(part: _Part, factor: float, epsilon: float) -> torch.Tensor:
    out, expected = part.out.double(), part.expected.double()
    allowed = max(SLACK, epsilon) * (factor * expected).abs()
    return (out - factor * expected).abs() <= torch.minimum(allowed, EXPLAINED * (out - expected).abs())


def _is_offset(part: _Part, offset: float, epsilon: float) -> torch.Tensor:
    out, expected = part.out.double(), part.expected.double()
    allowed = SLACK * abs(offset) + 2 * epsilon * (out.abs() + expected.abs())
    return (out - expected - offset).abs() <= allowed.clamp(max=EXPLAINED * abs(offset))


def _rounded(sample: _Part, coarser: torch.dtype) -> _Claim:
    """Numbers of a coarser dtype, where the expected ones aren't any."""

    def is_one(values: torch.Tensor) -> torch.Tensor:
        return values.to(coarser).double() == values

    name = str(coarser).removeprefix("torch.")
    is_special = bool(is_one(sample.expected).double().mean() < 1 - SHARE) if sample.expected.numel() else False
    return _Claim(f"is exactly a {name} number, which few of the expected ones are",
                  lambda part: (is_one(part.out) & is_special, None))


def _transposed(compared: Compared) -> _Claim:
    """The last two dimensions as memory holds them if they were written in the other order."""
    rows, columns = compared.output.shape[-2:]

    def test(part: _Part) -> tuple[torch.Tensor, None]:
        inside = part.at % (rows * columns)
        return _is_expected_at(compared, part.at, part.at - inside + inside % rows * columns + inside // rows), None

    if rows == columns:
        return _Claim("is what is expected at the transposed place ([j, i] for [i, j])", test)
    return _Claim(f"is what memory would hold there if the output were transposed, [{columns}, {rows}]", test)


def _shifted(compared: Compared, axis: Axis, step: int) -> _Claim:
    """The values of the neighbour, `step` (1 or -1) further along a dimension."""
    size = compared.output.shape[axis.dimension]
    stride = compared.output.shape[axis.dimension + 1 :].numel()

    def test(part: _Part) -> tuple[torch.Tensor, torch.Tensor]:
        target = part.at // stride % size + step
        inside = (target >= 0) & (target < size)
        return _is_expected_at(compared, part.at, torch.where(inside, part.at + step * stride, part.at)), inside

    side = "before" if step < 0 else "after"
    words = f"one {axis.one} {side} it" if axis.many else f"one step {side} it along {axis.one}"
    return _Claim(f"is what is expected {words}", test, those=" that has such a neighbour")


def _is_expected_at(compared: Compared, at: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Whether what came at some places would have been right at others, by the rule that judges all elements."""
    oracle = None if compared.oracle is None else take(compared.oracle, other)
    judged = compare.judge(take(compared.output, at), take(compared.reference, other), oracle,
                           compared.tolerance, compared.scale)
    found = [each.bad.logical_not() for each in judged]
    return torch.cat(found) if found else at.new_zeros(0, dtype=torch.bool)


def _is_unwritten(output: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    values = take(output, at).reshape(-1, 1).view(torch.uint8)
    found = torch.zeros(len(at), dtype=torch.bool, device=at.device)
    for pattern in (JUDGES_BYTES, ALLOCATORS_BYTES) if output.device.type == "cpu" else (JUDGES_BYTES,):
        size = values.shape[1]
        expected = torch.tensor((pattern * size)[:size], dtype=torch.uint8, device=at.device)
        if size >= len(pattern):
            found |= (values == expected).all(dim=1)
    return found


def _parts(compared: Compared) -> Iterator[_Part]:
    """All wrong elements, some at a time: few enough for several wide copies of them."""
    flat, size = compared.wrong.reshape(-1), max(1, compare.CHUNK // 8)
    for begin in range(0, flat.numel(), size):
        at = flat[begin : begin + size].nonzero().flatten() + begin
        if at.numel():
            yield _part(compared, at)


def _sample(compared: Compared) -> _Part:
    """Wrong elements from all over, no fewer than the sample's size or all."""
    flat, size, seen, found = compared.wrong.reshape(-1), compare.CHUNK, 0, list[torch.Tensor]()
    every = max(1, int(flat.sum()) // SAMPLE)
    for begin in range(0, flat.numel(), size):
        at = flat[begin : begin + size].nonzero().flatten() + begin
        found.append(at[-seen % every :: every])
        seen += at.numel()
    return _part(compared, torch.cat(found))


def _part(compared: Compared, at: torch.Tensor) -> _Part:
    exact = compared.reference if compared.oracle is None else compared.oracle
    return _Part(at, widen(take(compared.output, at)), widen(take(exact, at)))
