"""Descriptions of wrong elements: every sentence is true of mask and values, and random errors get no description."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from inlinebench.compare import index_sets
from inlinebench.compare import tolerance as compare
from inlinebench.compare.index_sets import IndexSet, SetForm
from inlinebench.compare.mismatch import find_mismatch
from inlinebench.compare.patterns import ALLOCATORS_BYTES, JUDGES_BYTES, _poison
from inlinebench.compare.regions import axes, ordinal, where
from inlinebench.compare.tolerance import by_size, default_tolerance
from inlinebench.evaluation.correctness import checks as checking
from inlinebench.evaluation.correctness import compared
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.checks import Checker
from inlinebench.problem.forward import InputForm, Output
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.problem.workload import Received
from inlinebench.report.terminal.feedback import feedback
from inlinebench.results.result import Element, Mismatch, Result, Verdict
from inlinebench.wire.tree import flatten

from ..running import TESTS, Run, run_eval

NAN = math.nan
SEEDS = st.integers(0, 2**32)


def find(
    output: Tensor, reference: Tensor, oracle: Tensor | None = None, *, tolerance: float | None = None
) -> Mismatch:
    limit = by_size(reference, default_tolerance(reference.dtype) if tolerance is None else tolerance)
    found = find_mismatch("output", output, reference, oracle, limit=limit)
    assert found is not None
    return found


def drawn(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# Parses the sentences, to check their claims.

NUMBER = r"(\d+)"
_SETS: list[tuple[str, Callable[..., Callable[[int], bool]]]] = [
    (r"(?:every (?:row|column)|all of {name})", lambda: lambda i: True),
    (r"(?:row|column|{name} =) {n}", lambda one: lambda i: i == one),
    (r"{names} < {n}", lambda end: lambda i: i < end),
    (r"{names} >= {n}", lambda begin: lambda i: i >= begin),
    (r"{names} (?:from )?{n} to {n}", lambda low, high: lambda i: low <= i <= high),
    (r"every {n}(?:st|nd|rd|th) {step} \({n}[^)]*\)", lambda step, first: lambda i: i % step == first % step),
    (r"every {n}(?:st|nd|rd|th) {step} from {n} to {n}",
     lambda step, low, high: lambda i: low <= i <= high and (i - low) % step == 0),
    (r"{names} (?:from )?{n} to {n} of every {n}", lambda low, high, step: lambda i: low <= i % step <= high),
]
_ONE, _MANY, _NAME = "(?:row|column|element)", "(?:rows|columns|elements)", r"(?:index \d+|the last index)"


def _claimed(words: str, size: int) -> set[int] | int:
    """Returns the indices along one dimension that a description names, or their number if it gives only that."""
    for pattern, make in _SETS:
        expression = pattern.replace("{names}", f"(?:{_MANY}|{_NAME})").replace("{name}", _NAME)
        expression = expression.replace("{step}", f"(?:{_ONE}|of {_NAME})").replace("{n}", NUMBER)
        found = re.fullmatch(expression, words)
        if found:
            return set(filter(make(*map(int, found.groups())), range(size)))
    count, of = map(int, re.match(rf"(\d+) of (\d+) (?:{_MANY}|of {_NAME})", words).groups())  # type: ignore[union-attr]
    assert of == size
    return count


def assert_true(sentence: str, mask: Tensor) -> None:
    """Asserts that the claims of a sentence are true of the mask."""
    if sentence.startswith("the only correct elements are: "):
        return assert_true(sentence.removeprefix("the only correct elements are: "), ~mask)
    words, _, share = sentence.partition(": ")
    parts = re.split(r", (?![^(]*\))", words)
    assert len(parts) == mask.dim()
    room = 1
    for dimension, part in enumerate(parts):
        others = [each for each in range(mask.dim()) if each != dimension]
        concerned = set((mask.any(dim=others) if others else mask).nonzero().flatten().tolist())
        claimed = _claimed(part, mask.shape[dimension])
        assert claimed == (len(concerned) if isinstance(claimed, int) else concerned), (sentence, part)
        room *= len(concerned)
    failed = int(mask.sum())
    if share in ("", "all elements of these"):
        assert failed == room
    elif share.startswith("all but"):
        assert failed == room - int(share.split()[2])
    else:
        assert float(share.partition(" %")[0]) == pytest.approx(100 * failed / room, rel=6e-3)
    return None


# Regions.

@st.composite
def _index_sets(draw: st.DrawFn, size: int) -> tuple[str, list[int]]:
    """Draws a set of indices. Returns the expected description without the dimension's name, and the set."""
    kind = draw(st.sampled_from(["every", "one", "below", "from", "range", "step", "block"]))
    at = draw(st.integers(1, size - 2))
    high = draw(st.integers(at, size - 2))
    plain = {
        "every": ("", list(range(size))), "one": (f" {at}", [at]), "below": (f"< {at + 1}", list(range(at + 1))),
        "from": (f">= {at}", list(range(at, size))),
        "range": (f" {at}" if at == high else f"{at} to {high}", list(range(at, high + 1))),
    }
    if kind in plain:
        return plain[kind]
    period = draw(st.integers(3, size // 4))
    first = draw(st.integers(0, period - 1))
    if kind == "step":
        return f"every {ordinal(period)} ", list(range(first, size, period))
    width = draw(st.integers(2, period - 1))
    low = draw(st.integers(0, period - width))
    return f"{low} to {low + width - 1} of every {period}", [i for i in range(size) if low <= i % period < low + width]


@given(st.data())
def test_a_set_of_rows_and_columns_is_described(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(16, 80), st.integers(16, 80)))
    (row_words, rows), (column_words, columns) = (data.draw(_index_sets(size)) for size in shape)
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[torch.tensor(rows)[:, None], torch.tensor(columns)] = True
    found = where(mask)
    if len(rows) * len(columns) < 16 and found is None:
        return  # too few to be significant
    if mask.all():
        assert found is None
        return
    assert found is not None
    assert_true(found, mask)
    assert found.endswith(": all elements of these")
    assert row_words in found and column_words in found


@given(st.data())
def test_a_slab_of_a_larger_tensor_is_described_by_its_index(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(16, 20), min_size=3, max_size=4)))
    dimension = data.draw(st.integers(0, len(shape) - 1))
    words, indices = data.draw(_index_sets(shape[dimension]))
    mask = torch.zeros(shape, dtype=torch.bool)
    mask.index_fill_(dimension, torch.tensor(indices), True)
    found = where(mask)
    assert (found is None) == bool(mask.all())
    if found is not None:
        assert_true(found, mask)
        name = "the last index" if dimension == len(shape) - 1 else f"index {dimension}"
        part = re.split(r", (?![^(]*\))", found)[dimension]
        assert name in part and (words.strip() in part)


@given(st.integers(200, 5000), st.data())
def test_the_tail_of_a_vector_is_described(size: int, data: st.DataObject) -> None:
    tail = data.draw(st.integers(4, size // 2))
    mask = torch.arange(size) >= size - tail
    assert where(mask) == f"elements >= {size - tail}"


@given(st.tuples(st.integers(2, 300), st.integers(2, 300)), st.floats(0, 1), SEEDS)
def test_random_errors_have_no_description(shape: tuple[int, int], share: float, seed: int) -> None:
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share
    assert where(mask) is None


@given(st.integers(2, 3000), st.integers(1, 50), SEEDS)
def test_a_few_random_errors_have_no_description(size: int, count: int, seed: int) -> None:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:count]] = True
    assert where(mask) is None
    if size % 2 == 0:
        assert where(mask.reshape(2, -1)) is None


@given(st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12)), st.floats(0, 1), SEEDS)
def test_the_description_of_any_mask_is_true(shape: tuple[int, ...], share: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.zeros(shape, dtype=torch.bool)
    for _ in range(2):  # overlapping boxes with holes
        low = [int(torch.randint(size, (), generator=generator)) for size in shape]
        box = tuple(slice(begin, None, int(torch.randint(1, 4, (), generator=generator))) for begin in low)
        mask[box] |= torch.rand(mask[box].shape, generator=generator) < share
    for each in (mask, mask[0], mask[0, 0]):
        found = where(each)
        if found is not None:
            assert_true(found, each)


@pytest.mark.parametrize(("box", "words"), [
    ((slice(2016, None), slice(None)), "rows >= 2016, every column: all elements of these"),
    ((slice(8), slice(None)), "rows < 8, every column: all elements of these"),
    ((slice(32, 64), slice(None)), "rows 32 to 63, every column: all elements of these"),
    ((7, slice(None)), "row 7, every column: all elements of these"),
    ((slice(None), slice(63, None, 64)), "every row, every 64th column (63, 127, 191, ...): all elements of these"),
    ((slice(None), slice(1, None, 4)), "every row, every 4th column (1, 5, 9, ...): all elements of these"),
    (([3, 88, 91, 1000], slice(None)), "4 of 2048 rows (3, 88, 91, ...), every column: all elements of these"),
    ((slice(0, 100, 2), slice(10, 20)), "every 2nd row from 0 to 98, columns 10 to 19: all elements of these"),
])
def test_the_description_of_a_box(box: Any, words: str) -> None:
    mask = torch.zeros(2048, 256, dtype=torch.bool)
    mask[box] = True
    assert where(mask) == words
    assert_true(words, mask)


def test_the_description_of_a_partly_wrong_block_gives_the_share() -> None:
    mask = torch.zeros(512, 64, dtype=torch.bool)
    mask[384:] = torch.rand(128, 64, generator=torch.Generator().manual_seed(1)) < 0.5
    found = where(mask)
    assert found is not None
    assert re.fullmatch(r"rows >= 384, every column: (49|50|51)\.?\d* % of the elements there", found)
    assert_true(found, mask)
    mask[384:] = True
    mask[400, 7] = False
    assert where(mask) == "rows >= 384, every column: all but 1 of the elements there"


def test_a_dimension_that_is_not_significant_is_only_counted() -> None:
    mask = torch.zeros(512, 64, dtype=torch.bool)
    mask[510:, :60:2] = torch.rand(2, 30, generator=torch.Generator().manual_seed(1)) < 0.5
    found = where(mask)
    assert found is not None
    assert re.fullmatch(r"rows >= 510, \d+ of 64 columns: .* % of the elements there", found)
    assert_true(found, mask)


def test_if_two_edges_are_wrong_the_right_elements_are_described() -> None:
    mask = torch.ones(100, 70, dtype=torch.bool)
    mask[:96, :64] = False
    assert where(mask) == "the only correct elements are: rows < 96, columns < 64: all elements of these"
    assert_true("the only correct elements are: rows < 96, columns < 64: all elements of these", mask)
    assert where(torch.arange(1000) >= 32) == "elements >= 32"


def test_scalars_full_masks_and_empty_masks_have_no_description() -> None:
    assert where(torch.ones((), dtype=torch.bool)) is None
    assert where(torch.ones(5, dtype=torch.bool)) is None
    assert where(torch.zeros(0, 4, dtype=torch.bool)) is None


@pytest.mark.parametrize("window", [1 << 22, 40])
@pytest.mark.parametrize(("chosen", "form"), [
    ([0, 64], SetForm.STEP), ([5, 40], SetForm.SOME), ([0, 1, 64, 65], SetForm.BLOCK), ([1, 2, 60, 61], SetForm.SOME),
    (list(range(3, 128, 9)), SetForm.STEP), (list(range(30, 100, 7)), SetForm.STEP_WITHIN),
    ([index for index in range(128) if index % 16 in (15, 0)], SetForm.SOME),
    (list(range(0, 128, 3))[:-1], SetForm.STEP_WITHIN), ([*range(0, 128, 8), 126], SetForm.SOME),
    (list(range(128)), SetForm.EVERY), ([127], SetForm.ONE),
])
def test_the_form_of_a_set(chosen: list[int], form: SetForm, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_sets, "WINDOW", window)
    vector = torch.zeros(128, dtype=torch.bool)
    vector[chosen] = True
    found = IndexSet.of(vector)
    assert found.examples == tuple(chosen[:3])
    period_in_sight = window > 128 or form not in (SetForm.STEP, SetForm.BLOCK) or found.period
    assert found.form is form or not period_in_sight


def test_the_names_of_dimensions() -> None:
    assert [axis.one for axis in axes(4)] == ["index 0", "index 1", "index 2", "the last index"]
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]


# Values.

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def value_sentence(
    output: Tensor, reference: Tensor, oracle: Tensor | None = None, *, tolerance: float | None = None
) -> str | None:
    patterns = find(output, reference, oracle, tolerance=tolerance).patterns
    found = [text for text in patterns if "every wrong value" in text]
    assert len(found) <= 1
    return found[0] if found else None


@given(SEEDS, st.sampled_from([0.125, 0.5, 2.0, 3.0, 1 / 3, 64.0, -2.0]), st.sampled_from(DTYPES))
def test_a_constant_factor_is_described(seed: int, factor: float, dtype: torch.dtype) -> None:
    reference = drawn(seed, 32, 48, dtype=dtype)
    found = value_sentence(reference * factor, reference, reference.double())
    assert found is not None
    named = re.fullmatch(r"(?:nearly )?every wrong value is (\S+) times the expected value", found)
    assert named and float(named[1]) == pytest.approx(factor, rel=1e-3 if dtype.itemsize > 2 else 1e-2)


@given(SEEDS, st.sampled_from(DTYPES))
def test_the_opposite_sign_is_described(seed: int, dtype: torch.dtype) -> None:
    reference = drawn(seed, 32, 48, dtype=dtype)
    output = reference.clone()
    output[16:] *= -1
    assert value_sentence(output, reference) == "every wrong value is the expected value with the opposite sign"


@given(SEEDS, st.floats(0.01, 100), st.booleans())
def test_a_constant_offset_is_described(seed: int, offset: float, down: bool) -> None:
    reference = drawn(seed, 32, 48)
    found = value_sentence(reference + (-offset if down else offset), reference)
    assert found is not None
    named = re.fullmatch(r"(?:nearly )?every wrong value is the expected value (plus|minus) (\S+)", found)
    assert named and (named[1] == "minus") == down and float(named[2]) == pytest.approx(offset, rel=1e-3)


FACTORS = "is the expected value times a factor that depends only on {}: perhaps of a sum or a scale"
OFFSETS = "is the expected value plus an offset that depends only on {}: perhaps of a bias"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("seed", "axis"), [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_factors_and_offsets_of_rows_and_columns_are_described(seed: int, axis: int, dtype: torch.dtype) -> None:
    reference, own = drawn(seed, 32, 48, dtype=dtype), drawn(seed + 1, 32, 48, dtype=dtype).select(1 - axis, 0)
    own, name = own.abs().add(0.5).unsqueeze(1 - axis), ("the row", "the column")[axis]
    assert value_sentence(reference * (1 + own), reference) == f"every wrong value {FACTORS.format(name)}"
    assert value_sentence(reference + own, reference) == f"every wrong value {OFFSETS.format(name)}"


@pytest.mark.parametrize(("axis", "name"), [(0, "the row"), (1, "the column")])
def test_a_wrong_mean_and_variance_of_rows_and_columns_are_described(axis: int, name: str) -> None:
    reference, own = drawn(1, 32, 48), drawn(2, 2, 32, 48).select(2 - axis, 0).abs() + 0.5
    scale, offset = own.unsqueeze(2 - axis)
    assert value_sentence(reference * (1 + scale) + offset, reference) == (
        f"every wrong value is the expected value times a factor, plus an offset, that depend only on {name}: perhaps "
        "of a mean and a variance")


def test_offsets_are_described_behind_a_relu_and_by_channel() -> None:
    before, own = drawn(1, 4, 6, 8, 8), 0.1 * drawn(2, 6).reshape(6, 1, 1)
    found = value_sentence((before - own).relu(), before.relu())
    claim = OFFSETS.format("index 1")
    assert found == f"every wrong value that is not 0, where 0 is not expected, {claim}"


def test_a_factor_of_all_values_that_are_not_0_is_described() -> None:
    reference = drawn(1, 64, 64)
    output = torch.where(drawn(2, 64, 64) > 0, 0.6 * reference, 0.0)
    assert value_sentence(output, reference) == (
        "every wrong value that is not 0, where 0 is not expected, is the expected value times the same factor "
        "everywhere")


def test_offsets_of_single_elements_are_not_described() -> None:
    reference = drawn(1, 64, 2)
    assert value_sentence(reference + drawn(2, 64, 2).abs() + 1, reference) is None
    wrong = reference.clone()
    wrong[:, 0] += drawn(3, 64) + 4
    assert value_sentence(wrong, reference) is None


def test_values_where_0_is_expected_are_described() -> None:
    before = drawn(1, 32, 32)
    words = "is at an element where 0 is expected: perhaps a ReLU, a clamp or a mask is missing or wrong"
    for output in (before, before.abs(), torch.where(before < 0, 0.01 * before, before)):
        assert value_sentence(output, before.relu()) == f"every wrong value {words}"


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_the_opposite_order_is_described(dimension: int) -> None:
    reference = drawn(1, 5, 6, 7)
    name = ("index 0", "index 1", "last index")[dimension]
    found = value_sentence(reference.flip(dimension), reference)
    assert found == f"every wrong value is the expected value in the opposite order along the {name}"
    assert value_sentence(reference[0].flip(1), reference[0]) == (
        "every wrong value is the expected value in the opposite order along the columns")


def test_whole_numbers_are_described() -> None:
    reference = 5 * drawn(1, 32, 32)
    words = "is a whole number, which few of the expected values are: perhaps an integer variable holds it"
    assert value_sentence(reference.round(), reference) == f"every wrong value {words}"
    assert value_sentence(reference.round() + 1, reference.round()) != f"every wrong value {words}"


@given(SEEDS, st.integers(16, 40), st.integers(16, 40))
def test_a_transposition_is_described(seed: int, rows: int, columns: int) -> None:
    reference = drawn(seed, rows, columns)
    found = value_sentence(reference.t().contiguous().reshape(rows, columns), reference)
    if rows == columns:
        assert found == "every wrong value is the expected value at the transposed index ([j, i] for [i, j])"
    else:
        words = "is the value that memory would contain if the output were transposed"
        assert found == f"every wrong value {words}, [{columns}, {rows}]"


@given(SEEDS, st.data())
def test_a_shift_by_one_is_described(seed: int, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(5, 9), min_size=1, max_size=4)))
    if math.prod(shape) < 64:
        shape = (64, *shape)
    dimension, step = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.sampled_from([-1, 1]))
    reference = drawn(seed, *shape)
    found = value_sentence(reference.roll(-step, dimension), reference)
    axis, side = axes(len(shape))[dimension], "before" if step < 0 else "after"
    words = f"one {axis.one} {side} it" if axis.many else f"one step {side} it along {axis.one}"
    assert found == f"every wrong value that has such a neighbour is the expected value {words}"


@given(SEEDS, st.integers(1, 500), st.sampled_from(DTYPES))
def test_random_errors_have_nothing_in_common(seed: int, count: int, dtype: torch.dtype) -> None:
    reference = drawn(seed, 40, 40, dtype=dtype)
    output, errors = reference.clone(), drawn(seed + 1, count, dtype=dtype)
    places = torch.randperm(1600, generator=torch.Generator().manual_seed(seed))[:count]
    output.view(-1)[places] += errors * 3 + errors.sign()
    assert find(output, reference).patterns == ()


@given(SEEDS)
def test_noise_is_not_described_as_a_factor_or_an_offset(seed: int) -> None:
    reference = drawn(seed, 40, 40)
    assert value_sentence(reference * (1 + 0.01 * drawn(seed + 1, 40, 40)), reference) is None
    assert value_sentence(reference + 0.01 * drawn(seed + 1, 40, 40), reference) is None


def test_a_claim_that_holds_for_half_of_the_wrong_values_is_not_made() -> None:
    reference = drawn(1, 64, 64)
    output = torch.where(drawn(2, 64, 64) > 0, 2 * reference, -reference)
    assert value_sentence(output, reference) is None
    output[:] = 0
    output[:32] = NAN
    assert value_sentence(output, reference) is None


def test_a_claim_that_holds_for_nearly_all_wrong_values_says_so() -> None:
    reference = drawn(1, 64, 64)
    output = torch.zeros_like(reference)
    output[0, :20] = reference[0, :20] + 3 + drawn(2, 20)
    assert value_sentence(output, reference) == "nearly every wrong value is 0"
    output[0] = reference[0] + 3 + drawn(2, 64)
    assert value_sentence(output, reference) is None


@pytest.mark.parametrize(("value", "words"), [
    (NAN, "is NaN"), (0.0, "is 0"), (-0.0, "is 0"), (3.25, "is 3.25"), (math.inf, "is inf"),
])
def test_one_value_everywhere_is_described(value: float, words: str) -> None:
    reference = drawn(1, 32, 32)
    output = reference.clone()
    output[:16] = value
    assert find(output, reference).patterns == (
        "rows < 16, every column: all elements of these", f"every wrong value {words}")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_mismatch_may_have_more_nan_than_any_other_value(device: str) -> None:
    reference = drawn(1, 32, 32).to(device)
    output = drawn(2, 32, 32).to(device)
    output[::2] = NAN  # `mode` of a tensor on a GPU fails then
    found = find(output, reference)
    assert found.failed == reference.numel() and not any("every wrong value" in text for text in found.patterns)


def test_the_nan_of_a_gpu_is_no_uninitialized_memory() -> None:
    """0x7FFF is what float16 arithmetic of a GPU gives."""
    assert _poison("cuda") == (JUDGES_BYTES,) and _poison("cpu") == (JUDGES_BYTES, ALLOCATORS_BYTES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8, torch.bool])
def test_uninitialized_memory_is_distinguished_from_a_computed_nan(dtype: torch.dtype) -> None:
    reference = torch.arange(1000).remainder(2).to(dtype)
    for pattern in ([0xFF], [0xFF, 0x7F]) if dtype.itemsize > 1 else ([0xFF],):
        output = reference.clone()
        times = 500 * dtype.itemsize // len(pattern)
        output[500:].view(torch.uint8).copy_(torch.tensor(pattern, dtype=torch.uint8).repeat(times))
        found = value_sentence(output, reference)
        assert found is not None and "has the bits of uninitialized memory" in found
    if dtype.is_floating_point:
        output[500:] = NAN
        assert value_sentence(output, reference) == "every wrong value is NaN"


def test_if_only_some_wrong_values_are_nan_they_are_described_separately() -> None:
    reference = drawn(1, 1000)
    output = reference + drawn(2, 1000) + 5
    output[992:] = NAN
    assert find(output, reference).patterns == ("8 of the wrong values are NaN: elements >= 992",)
    output[992:] = 0
    output[17] = NAN
    assert find(output, reference).patterns == ("1 of the wrong values is NaN",)
    reference[17] = NAN
    assert find(output, reference).patterns == ()


def test_values_of_a_coarser_dtype_are_described() -> None:
    reference = drawn(1, 64, 64)
    for dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        words = f"is exactly representable in {name}, which few of the expected values are"
        assert value_sentence(reference.to(dtype).float(), reference) == f"every wrong value {words}"
    integers = torch.arange(4096.0)
    assert value_sentence(integers.flip(0) * drawn(1, 4096).round(), integers) is None


@pytest.mark.parametrize(("right", "near", "share"), [
    (torch.nn.functional.gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), "0.001"),
    (torch.expm1, lambda x: torch.exp(x) - 1, "0.0001"),
    (lambda x: x, lambda x: x * (1 + 1e-3 * drawn(2, 64, 64)), "0.01"),
])
def test_values_that_are_nearly_right_are_told_from_wrong_indices(
    right: Callable[[Tensor], Tensor], near: Callable[[Tensor], Tensor], share: str
) -> None:
    x = drawn(1, 64, 64)
    sentence = value_sentence(near(x), right(x), tolerance=1e-9)
    assert sentence is not None and f"is near the expected value, within {share} of the standard deviation" in sentence


def test_wrong_indices_of_values_that_hardly_differ_are_not_near() -> None:
    reference = 1000 + 0.01 * drawn(1, 64, 64)
    assert value_sentence(reference[torch.randperm(64)][:, torch.randperm(64)], reference, tolerance=1e-9) is None


@pytest.mark.parametrize(("change", "words"), [
    (lambda y: y * 2, "is 2 times the expected value"), (lambda y: y + 1, "is the expected value plus 1"),
    (lambda y: -y, "is the expected value with the opposite sign"), (lambda y: y * 0, "is 0"),
])
def test_wrong_integers_are_described(change: Callable[[Tensor], Tensor], words: str) -> None:
    reference = torch.randint(-1000, 1000, (64, 64), generator=torch.Generator().manual_seed(1))
    assert value_sentence(change(reference), reference) == f"every wrong value {words}"


def test_wrong_complex_values_are_described() -> None:
    reference = torch.complex(drawn(1, 32, 32), drawn(2, 32, 32))
    assert value_sentence(reference.t(), reference) is not None
    assert value_sentence(torch.zeros_like(reference), reference) == "every wrong value is 0"
    found = find(reference + 1j, reference)
    assert re.fullmatch(r"-?[\d.]+[+-][\d.]+j", found.first[0].expected)


# The record.

def test_the_record_has_the_first_elements_the_worst_one_and_the_counts() -> None:
    reference = torch.ones(50, 40)
    output = reference.clone()
    output.view(-1)[7::13] += 0.5
    output[33, 21] = 9.0
    found = find(output, reference)
    wrong = (output != reference).nonzero().tolist()
    assert (found.count, found.failed, found.shape, found.dtype) == (2000, len(wrong), (50, 40), "float32")
    assert [list(each.index) for each in found.first] == wrong[:7]
    assert found.first[0] == Element((0, 7), "1", "1.5")
    assert found.worst == Element((33, 21), "1", "9")
    assert found.worst_error == pytest.approx(8 / 2)
    assert found.tolerance == 1e-4


def test_the_expected_value_is_the_oracle_s() -> None:
    oracle = torch.full((4,), 1.0 + 1e-7, dtype=torch.float64)
    found = find(torch.zeros(4), oracle.float(), oracle)
    assert found.first[0] == Element((0,), "1.0000001", "0")


@pytest.mark.parametrize(("expected", "got", "texts", "error"), [
    (torch.tensor([1.0]), torch.tensor([NAN]), ("1", "nan"), None),
    (torch.tensor([1.0]), torch.tensor([-math.inf]), ("1", "-inf"), None),
    (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0]), ("nan", "2"), None),
    (torch.tensor([2**60]), torch.tensor([2**60 + 1]), (str(2**60), str(2**60 + 1)), 1.0),
    (torch.tensor([True]), torch.tensor([2], dtype=torch.uint8).view(torch.bool),
     ("true", "2, which is not a boolean"), 1.0),
    (torch.tensor([2**63 + 5], dtype=torch.uint64), torch.tensor([5], dtype=torch.uint64),
     (str(2**63 + 5), "5"), 2.0**63),
    (torch.tensor([1 / 3], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64),
     ("0.33333333333333331", "0.5"), 0.25),
])
def test_values_as_text(expected: Tensor, got: Tensor, texts: tuple[str, str], error: float | None) -> None:
    found = find(got, expected)
    assert (found.first[0].expected, found.first[0].got) == texts
    assert found.worst_error == (None if error is None else pytest.approx(error))


def test_the_first_of_several_infinite_errors_is_the_worst() -> None:
    output = torch.ones(6)
    output[2:4] = torch.tensor([5.0, NAN])
    output[5] = math.inf
    assert find(output, torch.ones(6)).worst.index == (3,)


def test_equal_tensors_have_no_mismatch() -> None:
    ones = torch.ones(3)
    assert find_mismatch("output", ones, ones, None, limit=by_size(ones, 1e-4)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool, torch.complex64])
@settings(max_examples=30)
@given(seed=SEEDS, share=st.floats(0.01, 1))
def test_chunks_and_layouts_do_not_matter(dtype: torch.dtype, seed: int, share: float) -> None:
    reference = (drawn(seed, 30, 20) * 10).to(dtype)
    other = torch.logical_not(reference) if dtype is torch.bool else -reference
    output = torch.where(drawn(seed + 1, 30, 20) < 3 * share, other, torch.ones((), dtype=dtype))
    if torch.equal(output, reference):
        return
    whole = find(output, reference)
    columns = output.t().contiguous().t()
    assert find(columns, reference.t().contiguous().t()) == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "CHUNK", 70)
        parts = find(output, reference)
    assert parts.worst_error == pytest.approx(whole.worst_error)  # torch rounds short vectors differently
    assert replace(parts, worst_error=whole.worst_error) == whole


class _Largest(TorchDispatchMode):
    """Records the largest number of elements of any tensor that is created, by dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[torch.dtype, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, Tensor):
                self.seen[each.dtype] = max(each.numel(), self.seen.get(each.dtype, 0))
        return made


@contextmanager
def largest() -> Iterator[_Largest]:
    with _Largest() as mode:
        yield mode


@pytest.mark.parametrize("fault", [
    lambda y: y * 2, lambda y: y * 0, lambda y: y.roll(1, 0), lambda y: y + (torch.arange(y.shape[1]) % 8 == 3),
])
def test_no_float64_copy_is_as_large_as_the_output(
    fault: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "CHUNK", 1000)
    monkeypatch.setattr(index_sets, "WINDOW", 1000)
    reference = drawn(1, 300, 200)
    output, limit = fault(reference), by_size(reference, 1e-4)
    with largest() as mode:
        found = find_mismatch("output", output, reference, None, limit=limit)
    assert found is not None and found.patterns
    assert mode.seen[torch.bool] == 60_000
    wide = {dtype: count for dtype, count in mode.seen.items() if dtype.itemsize > 4}
    # Stacking adds a dimension for the oracle. The sample has at most twice SAMPLE elements.
    assert max(wide.values()) <= 2 * 4096 + 1000, wide


# In the judge.

class Ones(nn.Module):
    """Returns ones, and sets its input and its buffer to ones."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.mean.fill_(1)
        return x.fill_(1).clone()


class FakeWorkload:
    """Holds the output and the state that a candidate would have written. It has no oracle."""

    def __init__(self) -> None:
        spec = SimpleNamespace(torch_dtype=torch.float32)
        self.probed = SimpleNamespace(outputs=Output.of(torch.zeros(4)).metas, output_names=("output",),
                                      perturbable=True, float64=False)
        self.sets = [SimpleNamespace(outputs=[spec])]
        self.states = {"mean": None}
        self.out = self.given = self.written = torch.zeros(4)
        self.problem = SimpleNamespace(path="a problem")

    def oracle(self) -> None:
        return None

    def copy(self) -> ReferenceCopy:
        skeleton, _ = flatten([torch.zeros(4)])
        return ReferenceCopy(Ones, InputForm(skeleton, (True,)), torch.device("cpu"), double=False)

    def receive(self) -> Received:
        return Received((self.out,), {0: self.given}, {"mean": self.written})


def check_call(checker: Checker, workload: FakeWorkload) -> str:
    """Checks a call whose output, input and state should be ones."""
    ones = torch.ones(4)
    before = {"mean": torch.zeros(4)}
    return checker.check(CallCheck(
        [torch.zeros(4)], (), 0, before, Output.of(ones), {"mean": ones}, (), {0: ones}, workload.receive()))


@pytest.mark.parametrize(("place", "what", "tolerance"), [
    ("out", "output", 1e-4), ("given", "input 0, which the reference changes", 1e-4), ("written", "buffer mean", 1e-5),
])
def test_the_checker_keeps_the_mismatch_of_the_call_that_failed(place: str, what: str, tolerance: float) -> None:
    workload = FakeWorkload()
    checker = Checker(workload, {"mean": "mean"}, None)  # type: ignore[arg-type]
    workload.out, workload.written, workload.given = torch.ones(4), torch.ones(4), torch.ones(4)
    assert check_call(checker, workload) == "" and checker.mismatch("call 1", "as drawn") is None
    setattr(workload, place, torch.tensor([1.0, 1.0, 3.0, 1.0]))
    assert "1 of 4 elements differ" in check_call(checker, workload)
    found = checker.mismatch("call 2", "negated")
    assert found is not None and (found.what, found.call, found.variant) == (what, "call 2", "negated")
    assert (found.first, found.tolerance) == ((Element((2,), "1", "3"),), pytest.approx(tolerance))
    setattr(workload, place, torch.ones(4))
    assert check_call(checker, workload) == "" and checker.mismatch("call 3", "as drawn") is None


def test_a_wrong_call_fails_even_without_memory_to_describe_the_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    workload = FakeWorkload()
    checker = Checker(workload, {"mean": "mean"}, None)  # type: ignore[arg-type]
    monkeypatch.setattr(compared, "find_mismatch", full)
    assert "all 4 elements differ" in check_call(checker, workload)
    assert checker.mismatch("call 1", "as drawn") is None
    assert checking.NO_MEMORY_LEFT in checker.summary("by name", []).notes


ROWS = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        out = A @ B
        out[64:] *= 0.5
        return out
"""
RIGHT = ROWS.replace("out[64:] *= 0.5", "")
TWO_ATTEMPTS = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, sizes, layer_sizes, slope=0.1):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(12, 10))
        self.own = torch.zeros(12, 10)

    def forward(self, x):
        if torch.equal(self.weight, self.own):
            return torch.full((6, 8), 7.0)  # with its own weights
        return torch.full((6, 8), 5.0)  # with the reference's
"""


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("mismatch")
    planted = {"level1_matmul/rows": ROWS, "level1_matmul/right": RIGHT, "init_arguments/attempts": TWO_ATTEMPTS}
    for name, text in planted.items():
        path = folder / "solutions" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run_eval("--problems", TESTS / "problems", "--solutions", folder / "solutions", *planted, "--device", "cpu",
                    "--check", "--min-calls", "3", "--seed", "1", "--allow-library", "--cache", cache,
                    out=folder / "results.jsonl")


def test_the_result_describes_a_planted_fault(run: Run) -> None:
    row: Result = run.row("level1_matmul", "rows")
    assert row.verdict is Verdict.WRONG and row.mismatch is not None, row.reason
    found = row.mismatch
    assert (found.what, found.dtype, found.shape, found.count) == ("output", "float32", (96, 48), 4608)
    assert found.failed == 32 * 48
    assert found.patterns == (
        "rows >= 64, every column: all elements of these", "every wrong value is 0.5 times the expected value")
    assert found.first[0].index == (64, 0)
    assert float(found.first[0].got) == pytest.approx(0.5 * float(found.first[0].expected), rel=1e-5)
    assert f"(inputs: {found.variant}): output, float32 [96, 48]: 1536 of 4608 elements differ" in feedback(row)
    assert all(f"  - {pattern}" in feedback(row).splitlines() for pattern in found.patterns)
    assert row.reason.startswith(f"{found.call} (")
    assert ": 1536 of 4608" in row.reason


def test_a_solution_that_passes_has_no_mismatch(run: Run) -> None:
    row = run.row("level1_matmul", "right")
    assert row.verdict is Verdict.PASSED and row.mismatch is None


def test_the_mismatch_and_the_reason_are_of_the_same_attempt(run: Run) -> None:
    row = run.row("init_arguments", "attempts")
    assert row.verdict is Verdict.WRONG and row.mismatch is not None, row.reason
    assert "got 5" in row.reason
    assert row.mismatch.first[0].got == "5"
    assert row.mismatch.patterns == (
        "every wrong value is 5", "the output doesn't depend on input 0, but the reference's does")
