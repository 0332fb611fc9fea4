"""Describes in one sentence what the wrong values of an output have in common.

A claim must hold for at least 99 % of all wrong elements. Claims are proposed from a sample of wrong elements, and then
verified for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch

from inlinebench.compare import tolerance as compare
from inlinebench.compare.elements import take, text_of, widen
from inlinebench.compare.regions import Axis, axes
from inlinebench.device_kinds import kind_of

SHARE = 0.99
"""The share of wrong elements for which a claim must hold."""
FEWEST = 16
"""The fewest wrong elements for claims that can hold for fewer by chance."""
SAMPLE = 4096
"""The number of wrong elements in the sample."""
SLACK = 1e-3
"""The relative tolerance of a constant factor or offset. It is larger for dtypes that are coarser than this."""
GROUP_SLACK = 1e-2
"""The relative tolerance of a factor or an offset that belongs to a row, a column or another index."""
GROUP_SIZE = 4
"""The fewest wrong elements in a row, on average, for a claim about factors or offsets of rows."""
LINEAR_SIZE = 16
"""The same for a claim about a factor and an offset."""
MOST_GROUPED = 1 << 24
"""No such claim is tested if more elements than this are wrong, because it takes several passes over them."""
EXPLAINED = 0.25
"""The largest share of an element's error that a factor or an offset may leave unexplained."""
NEAR = (1e-4, 1e-3, 1e-2)
"""How far near values may be from the expected ones, as shares of the standard deviation of the latter."""
FEWEST_NEAR = 4
"""The fewest wrong elements that have a standard deviation worth comparing with."""
JUDGES_BYTES, ALLOCATORS_BYTES = (0xFF,), (0xFF, 0x7F)
"""The bytes of uninitialized memory: in the judge's buffers, and in a solution's own memory with CUDA on the CPU."""


@dataclass(frozen=True)
class ComparedValues:
    """A tensor that failed a comparison, and the arguments of the comparison. All tensors have the same shape."""

    output: torch.Tensor
    """The tensor that failed."""
    reference: torch.Tensor
    """The reference's tensor."""
    oracle: torch.Tensor | None
    """The oracle's tensor, if there is one."""
    limit: compare.Limit
    """The limit of each element."""
    wrong: torch.Tensor
    """A bool tensor that marks the elements that differ."""


@dataclass(frozen=True)
class _Part:
    """Some of the wrong elements, as 1-d tensors of the same size."""

    at: torch.Tensor
    """The flat indices of the elements."""
    out: torch.Tensor
    """Their values in the output, in float64, complex128 or int64."""
    expected: torch.Tensor
    """Their expected values in the same dtype."""


@dataclass(frozen=True)
class _Claim:
    """A statement about wrong elements."""

    words: str
    """The statement, as the predicate of a sentence."""
    test: Callable[[_Part], tuple[torch.Tensor, torch.Tensor | None]]
    """Returns two bool tensors: where the claim holds, and where it applies (None: everywhere)."""
    fewest: int = FEWEST
    """The fewest wrong elements for the claim."""
    restriction: str = ""
    """Words for the elements to which the claim applies, if not all."""


def what_values(compared: ComparedValues) -> str | None:
    """Returns a sentence about the wrong values, or None if no claim holds."""
    sample = _sample(compared)
    for claim in _claims(compared, sample):
        if _holds(claim, [sample]) is not None:
            exactly = _holds(claim, _parts(compared))
            if exactly is not None:
                return f"{'every' if exactly else 'nearly every'} wrong value{claim.restriction} {claim.words}"
    return None


def _holds(claim: _Claim, parts: Iterable[_Part]) -> bool | None:
    """Whether a claim holds for all elements (True) or nearly all (False). None: the claim does not hold."""
    tested = passed = 0
    for part in parts:
        holds, applies = claim.test(part)
        tested += holds.numel() if applies is None else int(applies.sum())
        passed += int((holds if applies is None else holds & applies).sum())
    return passed == tested if tested >= claim.fewest and passed >= SHARE * tested else None


def _claims(compared: ComparedValues, sample: _Part) -> Iterator[_Claim]:
    """Yields the claims to test, the simplest first."""
    dtype = compared.output.dtype
    real = dtype.is_floating_point
    fewest = 1 if real or dtype.is_complex else FEWEST  # an integer can have these values by chance
    yield _Claim("has the bits of uninitialized memory: perhaps the kernel doesn't write the output there, or computes "
                 "it from uninitialized memory", lambda part: (_is_unwritten(compared.output, part.at), None), fewest)
    yield _Claim("is NaN", lambda part: (part.out != part.out, None), fewest)
    yield _Claim(f"is {'false' if dtype is torch.bool else 0}", lambda part: (part.out == 0, None), fewest)
    if not dtype.is_complex:
        value = sample.out.cpu().mode().values.to(sample.out.device)  # a GPU's `mode` fails if most values are NaN
        yield _Claim(f"is {text_of(value, dtype)}", lambda part: (part.out == value, None))
    if real:
        yield _Claim("is at an element where 0 is expected: perhaps a ReLU, a clamp or a mask is missing or wrong",
                     lambda part: (part.expected == 0, None))
        yield _whole(sample)
    if not dtype.is_complex and dtype is not torch.bool:
        yield from _arithmetic_claims(sample, torch.finfo(dtype).eps if real else 0.0)
    if compared.output.dim() > 1:
        yield _transposed(compared)
    for axis in axes(compared.output.dim()) if compared.output.dim() else ():
        yield from (_shifted(compared, axis, step) for step in (-1, 1))
        yield _mirrored(compared, axis)
    if real and compared.output.dim() > 1 and int(compared.wrong.sum()) <= MOST_GROUPED:
        for axis in reversed(axes(compared.output.dim())):
            yield from _of_each(compared, axis)
    if dtype in (torch.float32, torch.float64):
        yield from (_rounded(sample, coarser) for coarser in (torch.bfloat16, torch.float16))
    if real:
        yield from (_near(sample, share) for share in NEAR)


def _arithmetic_claims(sample: _Part, epsilon: float) -> Iterator[_Claim]:
    """Yields claims about the sign, a constant factor and a constant offset. `epsilon` is the dtype's epsilon."""
    out, expected = sample.out.double(), sample.expected.double()
    yield _Claim("is the expected value with the opposite sign", lambda part: (_is_factor(part, -1.0, epsilon), None))
    digits = 3 if epsilon > SLACK / 10 else 6
    usable = torch.isfinite(out) & torch.isfinite(expected)
    if bool((usable & (expected != 0)).any()):
        factor = float((out / expected)[usable & (expected != 0)].median())
        words = f"is {factor:.{digits}g} times the expected value"
        yield _Claim(words, lambda part: (_is_factor(part, factor, epsilon), None))
    if bool(usable.any()):
        offset = float((out - expected)[usable].median())
        words = f"is the expected value {'plus' if offset > 0 else 'minus'} {abs(offset):.{digits}g}"
        yield _Claim(words, lambda part: (_is_offset(part, offset, epsilon), None))


def _is_factor(
    part: _Part, factor: float | torch.Tensor, epsilon: float, slack: float = SLACK
) -> torch.Tensor:
    out, expected = part.out.double(), part.expected.double()
    allowed = max(slack, epsilon) * (factor * expected).abs()
    return (out - factor * expected).abs() <= torch.minimum(allowed, EXPLAINED * (out - expected).abs())


def _is_offset(
    part: _Part, offset: float | torch.Tensor, epsilon: float, slack: float = SLACK
) -> torch.Tensor:
    out, expected = part.out.double(), part.expected.double()
    size = torch.as_tensor(offset, dtype=torch.float64, device=out.device).abs()
    allowed = slack * size + 2 * epsilon * (out.abs() + expected.abs())
    return (out - expected - offset).abs() <= torch.minimum(allowed, EXPLAINED * size)


def _of_each(compared: ComparedValues, axis: Axis) -> Iterator[_Claim]:
    """Yields the claims that each index along a dimension has its own offset, or its own factor.

    They apply to values that are not 0, where 0 is not expected, because an activation may have replaced them.
    """
    shape, epsilon = compared.output.shape, torch.finfo(compared.output.dtype).eps
    size, stride = shape[axis.dimension], shape[axis.dimension + 1 :].numel()
    sums = torch.zeros(5, size, dtype=torch.float64, device=compared.output.device)

    def applies(part: _Part) -> torch.Tensor:
        return torch.isfinite(part.out) & torch.isfinite(part.expected) & (part.out != 0) & (part.expected != 0)

    def index(part: _Part) -> torch.Tensor:
        return part.at // stride % size

    whole = 0
    for part in _parts(compared):
        used, whole = applies(part), whole + part.at.numel()
        out, expected = part.out[used].double(), part.expected[used].double()
        terms = torch.stack([torch.ones_like(out), out - expected, out * expected, expected * expected, expected])
        sums.index_add_(1, index(part)[used], terms)
    count, difference, product, square, total = sums
    if not int(count.sum()) >= max(whole / 4, GROUP_SIZE * int((count > 0).sum())):
        return
    offsets, factors = difference / count, product / square
    slopes = (count * product - total * (difference + total)) / (count * square - total * total)
    constants = (difference + total - slopes * total) / count

    def has_offset(part: _Part) -> tuple[torch.Tensor, torch.Tensor]:
        return _is_offset(part, offsets[index(part)], epsilon, GROUP_SLACK), applies(part)

    def has_factor(part: _Part) -> tuple[torch.Tensor, torch.Tensor]:
        return _is_factor(part, factors[index(part)], epsilon, GROUP_SLACK), applies(part)

    def is_linear(part: _Part) -> tuple[torch.Tensor, torch.Tensor]:
        scaled, constant = slopes[index(part)] * part.expected.double(), constants[index(part)]
        out = part.out.double()
        allowed = GROUP_SLACK * (scaled.abs() + constant.abs())
        explained = EXPLAINED * (out - part.expected.double()).abs()
        return (out - scaled - constant).abs() <= torch.minimum(allowed, explained), applies(part)

    def differ(values: torch.Tensor) -> bool:
        used = values[count > 0]
        return bool((used - used.median()).abs().amax() > 2 * GROUP_SLACK * used.median().abs())

    only = f"that depends only on {'the ' if axis.many else ''}{axis.one}"
    nonzero = "" if int(count.sum()) == whole else " that is not 0, where 0 is not expected,"
    words = f"an offset {only}: perhaps of a bias" if differ(offsets) else "the same offset everywhere"
    yield _Claim(f"is the expected value plus {words}", has_offset, restriction=nonzero)
    words = f"a factor {only}: perhaps of a sum or a scale" if differ(factors) else "the same factor everywhere"
    yield _Claim(f"is the expected value times {words}", has_factor, restriction=nonzero)
    if int(count.sum()) >= LINEAR_SIZE * int((count > 0).sum()):
        words = f"a factor, plus an offset, {only.replace('depends', 'depend')}: perhaps of a mean and a variance"
        yield _Claim(f"is the expected value times {words}", is_linear, restriction=nonzero)


def _whole(sample: _Part) -> _Claim:
    """Returns the claim that values are whole numbers, while the expected ones are not."""
    is_telling = bool((sample.expected == sample.expected.round()).double().mean() < 1 - SHARE)
    return _Claim("is a whole number, which few of the expected values are: perhaps an integer variable holds it",
                  lambda part: ((part.out == part.out.round()) & is_telling, None))


def _rounded(sample: _Part, coarser: torch.dtype) -> _Claim:
    """Returns the claim that values are representable in a coarser dtype, while the expected ones are not."""

    def fits(values: torch.Tensor) -> torch.Tensor:
        return values.to(coarser).double() == values

    name = str(coarser).removeprefix("torch.")
    is_telling = bool(fits(sample.expected).double().mean() < 1 - SHARE) if sample.expected.numel() else False
    return _Claim(f"is exactly representable in {name}, which few of the expected values are",
                  lambda part: (fits(part.out) & is_telling, None))


def _near(sample: _Part, share: float) -> _Claim:
    """Returns the claim that values are close to the expected ones, which differ much more from each other."""
    spread = float(sample.expected.std(correction=0))
    words = (f"is near the expected value, within {share:.2g} of the standard deviation: look for an approximation "
             "(tanh for erf in GELU, fast math), lost digits (exp(x) - 1 for expm1(x), log(1 + x) for log1p(x), a mean "
             "of squares minus a squared mean), fewer bits, or another constant (epsilon, n or n - 1), not for a wrong "
             "index")
    return _Claim(words, lambda part: ((part.out - part.expected).abs() <= share * spread, None), FEWEST_NEAR)


def _transposed(compared: ComparedValues) -> _Claim:
    """Returns the claim that the last two dimensions were written to memory in the opposite order."""
    rows, columns = compared.output.shape[-2:]

    def test(part: _Part) -> tuple[torch.Tensor, None]:
        inside = part.at % (rows * columns)
        return _is_expected_at(compared, part.at, part.at - inside + inside % rows * columns + inside // rows), None

    if rows == columns:
        return _Claim("is the expected value at the transposed index ([j, i] for [i, j])", test)
    return _Claim(f"is the value that memory would contain if the output were transposed, [{columns}, {rows}]", test)


def _shifted(compared: ComparedValues, axis: Axis, step: int) -> _Claim:
    """Returns the claim that values are those of the neighbour, `step` (1 or -1) further along a dimension."""
    size = compared.output.shape[axis.dimension]
    stride = compared.output.shape[axis.dimension + 1 :].numel()

    def test(part: _Part) -> tuple[torch.Tensor, torch.Tensor]:
        target = part.at // stride % size + step
        inside = (target >= 0) & (target < size)
        return _is_expected_at(compared, part.at, torch.where(inside, part.at + step * stride, part.at)), inside

    side = "before" if step < 0 else "after"
    words = f"one {axis.one} {side} it" if axis.many else f"one step {side} it along {axis.one}"
    return _Claim(f"is the expected value {words}", test, restriction=" that has such a neighbour")


def _mirrored(compared: ComparedValues, axis: Axis) -> _Claim:
    """Returns the claim that values are in the opposite order along a dimension."""
    size = compared.output.shape[axis.dimension]
    stride = compared.output.shape[axis.dimension + 1 :].numel()

    def test(part: _Part) -> tuple[torch.Tensor, None]:
        index = part.at // stride % size
        return _is_expected_at(compared, part.at, part.at + (size - 1 - 2 * index) * stride), None

    along = axis.many or axis.one
    return _Claim(f"is the expected value in the opposite order along the {along}".replace("the the", "the"), test)


def _is_expected_at(compared: ComparedValues, at: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns for each output element at the flat indices `at` whether it would pass at the indices `other`."""
    oracle = None if compared.oracle is None else take(compared.oracle, other)
    judged = compare.judge(take(compared.output, at), take(compared.reference, other), oracle,
                           compared.limit, other)
    found = [each.bad.logical_not() for each in judged]
    return torch.cat(found) if found else at.new_zeros(0, dtype=torch.bool)


def _poison(device: str) -> tuple[tuple[int, ...], ...]:
    """Returns the bytes of uninitialized memory.

    On a GPU only the judge writes such bytes: there, `ALLOCATORS_BYTES` are the NaN that float16 arithmetic gives.
    """
    return (JUDGES_BYTES, ALLOCATORS_BYTES) if kind_of(device).emulates_cuda else (JUDGES_BYTES,)


def _is_unwritten(output: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    values = take(output, at).reshape(-1, 1).view(torch.uint8)
    found = torch.zeros(len(at), dtype=torch.bool, device=at.device)
    for pattern in _poison(output.device.type):
        size = values.shape[1]
        expected = torch.tensor((pattern * size)[:size], dtype=torch.uint8, device=at.device)
        if size >= len(pattern):
            found |= (values == expected).all(dim=1)
    return found


def _parts(compared: ComparedValues) -> Iterator[_Part]:
    """Yields all wrong elements in parts that are small enough for several float64 copies."""
    flat, size = compared.wrong.reshape(-1), max(1, compare.CHUNK // 8)
    for begin in range(0, flat.numel(), size):
        at = flat[begin : begin + size].nonzero().flatten() + begin
        if at.numel():
            yield _part(compared, at)


def _sample(compared: ComparedValues) -> _Part:
    """Returns evenly spaced wrong elements: at least SAMPLE, or all if there are fewer."""
    flat, size, seen, found = compared.wrong.reshape(-1), compare.CHUNK, 0, list[torch.Tensor]()
    every = max(1, int(flat.sum()) // SAMPLE)
    for begin in range(0, flat.numel(), size):
        at = flat[begin : begin + size].nonzero().flatten() + begin
        found.append(at[-seen % every :: every])
        seen += at.numel()
    return _part(compared, torch.cat(found))


def _part(compared: ComparedValues, at: torch.Tensor) -> _Part:
    exact = compared.reference if compared.oracle is None else compared.oracle
    return _Part(at, widen(take(compared.output, at)), widen(take(exact, at)))
