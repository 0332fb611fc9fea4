from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from inlinebench.compare import tolerance as module
from inlinebench.compare.elements import unravel
from inlinebench.compare.tolerance import (
    FACTOR,
    ULPS,
    Comparison,
    by_sensitivity,
    by_size,
    compare,
    default_tolerance,
    perturbation_of,
    root_mean_square,
    typical_size,
)

NAN, INF = math.nan, math.inf


def judge(output: Tensor, reference: Tensor, oracle: Tensor | None = None, tolerance: float = 1e-4) -> Comparison:
    """Compares by the output's size."""
    return compare(output, reference, oracle, by_size(reference, tolerance))


def judge_by_rule(output: Tensor, oracle: Tensor, sigma: float | Tensor, tolerance: float = 1e-4) -> Comparison:
    """Compares by the rule, with a reference that is the rounded oracle."""
    absolute = FACTOR * torch.as_tensor(sigma, dtype=torch.float64).expand(oracle.numel())
    return compare(output, oracle.to(output.dtype), oracle, by_sensitivity(output.dtype, tolerance, absolute))


@pytest.mark.parametrize(("error", "passes"), [(1.9e-4, True), (2.1e-4, False), (-1.9e-4, True), (-2.1e-4, False)])
def test_the_bound_by_size_is_the_tolerance_times_size_plus_magnitude(error: float, passes: bool) -> None:
    ones = torch.ones(100, dtype=torch.float64)  # s + |y| is 2
    output = ones.clone()
    output[7] += error
    found = judge(output, ones)
    assert found.passed is passes
    assert found.worst_error == pytest.approx(abs(error) / 2)
    assert found.max_abs_error == pytest.approx(abs(error))


def test_an_output_of_zeros_fails_even_if_values_are_small() -> None:
    small = torch.randn(1000) * 1e-7
    assert judge(small * (1 + 1e-5), small).passed
    assert judge(torch.zeros(1000), small).failed > 900


def test_one_wrong_element_fails_in_a_large_tensor() -> None:
    reference = torch.randn(1000, 1000)
    output = reference.clone()
    assert judge(output, reference).passed
    output[123, 456] += 0.01
    found = judge(output, reference)
    assert (found.failed, found.first_failure and found.first_failure[0]) == (1, (123, 456))
    assert "1 of 1000000 elements differ" in found.describe()
    assert "first at [123, 456]" in found.describe()


@pytest.mark.parametrize("special", [NAN, INF, -INF])
def test_nan_and_infinity_must_match_in_place(special: float) -> None:
    reference = torch.tensor([1.0, special, 3.0])
    assert judge(reference.clone(), reference).passed
    assert not judge(torch.tensor([1.0, 2.0, 3.0]), reference).passed
    assert not judge(torch.tensor([special, special, 3.0]), reference).passed
    assert not judge(torch.tensor([1.0, 2.0, special]), reference).passed


def test_infinities_of_opposite_signs_differ() -> None:
    assert not judge(torch.tensor([1.0, -INF]), torch.tensor([1.0, INF])).passed


def test_an_output_of_nan_fails_with_an_infinite_error() -> None:
    found = judge(torch.full((4,), NAN), torch.ones(4))
    assert (found.failed, found.worst_error, found.rel_l2_error) == (4, math.inf, None)


def test_an_output_near_the_oracle_or_near_the_reference_passes() -> None:
    oracle = torch.ones(10_000, dtype=torch.float64)
    reference = oracle.float()
    reference[5] += 0.1
    assert judge(oracle.float(), reference, oracle).passed
    assert judge(reference.clone(), reference, oracle).passed
    between = oracle.float()
    between[5] += 0.05
    assert not judge(between, reference, oracle).passed
    assert not judge(oracle.float(), reference).passed, "without an oracle only the reference counts"


@pytest.mark.parametrize(("dtype", "share"), [
    (torch.float32, 0.25), (torch.float64, 0.25), (torch.bfloat16, 0.5), (torch.float16, 0.5),
])
def test_the_perturbation_is_a_share_of_the_tolerance(dtype: torch.dtype, share: float) -> None:
    assert perturbation_of(dtype, 1e-4) == pytest.approx(share * 1e-4)


@pytest.mark.parametrize(("error", "passes"), [(3.9, True), (4.1, False)])
def test_an_element_may_be_off_by_four_standard_deviations(error: float, passes: bool) -> None:
    oracle, sigma = torch.zeros(100, dtype=torch.float64), torch.full((100,), 1e-3, dtype=torch.float64)
    output = oracle.float()
    output[7] = error * 1e-3
    assert judge_by_rule(output, oracle, sigma).passed is passes
    assert not judge_by_rule(output, oracle, sigma * (torch.arange(100) != 7)).passed, "its own deviation counts"


@pytest.mark.parametrize("value", [1.0, 1.2, 3e-5, -1.7e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2])
def test_an_element_may_be_off_by_units_in_its_last_place(value: float, dtype: torch.dtype) -> None:
    oracle = torch.tensor([value]).to(dtype).double()
    neighbours = oracle.to(dtype)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[dtype.itemsize]
    for steps, passes in ((0, True), (ULPS, True), (ULPS + 2, False)):
        output = (neighbours.view(bits) + steps).view(dtype)
        limit = by_sensitivity(dtype, 1e-12, torch.zeros(1, dtype=torch.float64))
        assert compare(output, neighbours, oracle, limit).passed is passes


def test_subnormal_numbers_may_be_flushed_to_zero() -> None:
    oracle = torch.tensor([1e-39, -1.1e-38, 2e-38], dtype=torch.float64)
    limit = by_sensitivity(torch.float32, 1e-12, torch.zeros(3, dtype=torch.float64))
    assert compare(torch.zeros(3), oracle.float(), oracle, limit).failed == 1


def test_the_oracle_s_own_rounding_is_allowed_for() -> None:
    """Where it cancels, the oracle is 0, and a result of another formula is not."""
    oracle, zeros = torch.tensor([0.0, 1.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    limit = by_sensitivity(torch.float32, 1e-4, zeros, root_mean_square(oracle))
    for error, passes in ((-1e-17, True), (1e-14, False)):
        assert compare(torch.tensor([error, 1.0]), oracle.float(), oracle, limit).passed is passes


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_infinities_and_nan_match_by_the_rule_too(dtype: torch.dtype) -> None:
    oracle = torch.tensor([NAN, INF, -INF, 0.0], dtype=torch.float64)
    oracle = oracle.to(torch.complex128) if dtype.is_complex else oracle
    assert judge_by_rule(oracle.to(dtype), oracle, 1.0).passed
    assert judge_by_rule(torch.ones(4, dtype=dtype), oracle, 1.0).failed == 3


def test_an_output_that_is_exactly_zero_must_be_exactly_zero() -> None:
    zeros = torch.zeros(50)
    assert judge(zeros.clone(), zeros).passed
    output = zeros.clone()
    output[3] = 1e-30
    assert not judge(output, zeros).passed


def test_large_integers_are_compared_exactly() -> None:
    reference = torch.tensor([1, 2**60, 3])
    assert judge(reference.clone(), reference, tolerance=1.0).passed
    found = judge(torch.tensor([1, 2**60 + 1, 3]), reference, tolerance=1.0)
    assert (found.failed, found.first_failure and found.first_failure[0]) == (1, (1,))


def test_a_bool_is_compared_by_its_byte() -> None:
    reference = torch.tensor([True, False, True])
    assert judge(reference.clone(), reference).passed
    odd = torch.tensor([1, 0, 2], dtype=torch.uint8).view(torch.bool)
    assert not judge(odd, reference).passed


def test_both_parts_of_complex_values_are_compared() -> None:
    reference = torch.randn(100, dtype=torch.complex64)
    assert judge(reference * (1 + 1e-6j), reference).passed
    for wrong in (0.1, 0.1j):
        output = reference.clone()
        output[50] += wrong
        assert judge(output, reference).failed == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_a_single_value_has_no_index(dtype: torch.dtype) -> None:
    one, zero = torch.tensor(1).to(dtype), torch.tensor(0).to(dtype)
    assert judge(one.clone(), one).passed
    found = judge(zero, one)
    assert found.first_failure == ((), 1.0, 0.0)
    assert found.describe() == "its one element differs; expected 1, got 0"


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool, torch.complex64])
def test_an_empty_output_passes(dtype: torch.dtype) -> None:
    empty = torch.empty((0, 3), dtype=dtype)
    found = judge(empty.clone(), empty)
    assert (found.count, found.failed) == (0, 0)


@pytest.mark.parametrize("place", [0, 6, 7, 13, 20, 22])
def test_the_size_of_chunks_does_not_matter(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = torch.randn(23)
    output = reference * (1 + 1e-6)
    output[place] += 1.0
    oracle = reference.double() * (1 + 1e-8)
    whole = judge(output, reference, oracle)
    monkeypatch.setattr(module, "CHUNK", 7)
    parts = judge(output, reference, oracle)
    assert (parts.failed, parts.first_failure) == (1, whole.first_failure)
    assert parts.first_failure is not None and parts.first_failure[0] == (place,)
    for name in ("worst_error", "max_abs_error", "rel_l2_error", "reference_rel_l2_error"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name))


def test_layouts_do_not_matter() -> None:
    reference = torch.randn(5, 7)
    columns = reference.t().contiguous().t()
    assert judge(columns, reference).passed
    columns[4, 2] += 1
    assert judge(columns, reference).first_failure == ((4, 2), *(float(t[4, 2]) for t in (reference, columns)))


def test_reported_errors_are_relative_to_the_oracle() -> None:
    oracle = torch.tensor([3.0, 4.0], dtype=torch.float64)
    found = judge(torch.tensor([3.0, 4.5]), torch.tensor([3.0, 4.05]), oracle, tolerance=1.0)
    assert found.rel_l2_error == pytest.approx(0.1)
    assert found.reference_rel_l2_error == pytest.approx(0.01, rel=1e-5)
    assert found.max_abs_error == pytest.approx(0.5)


def test_only_finite_elements_count_for_the_size() -> None:
    assert typical_size(torch.tensor([3.0, NAN, INF, 3.0])) == pytest.approx(3.0)
    assert typical_size(torch.tensor([NAN])) == 0.0


@pytest.mark.parametrize(("values", "size"), [
    (torch.cat([torch.ones(900), torch.full((100,), 1e6)]), 1.0),
    (torch.cat([torch.ones(600), torch.full((400,), -1e9)]), 1.0),
    (torch.cat([torch.ones(1), torch.zeros(9999)]), 1e-2),
])
def test_a_few_large_values_and_zeros_do_not_count_for_the_size(values: Tensor, size: float) -> None:
    assert typical_size(values) == pytest.approx(size, rel=1e-3)


@given(st.integers(0, 2**32), st.floats(0.1, 1e6))
def test_the_size_is_never_larger_than_the_root_mean_square(seed: int, factor: float) -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values[:400] *= factor
    assert typical_size(values) <= float(values.square().mean().sqrt()) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2), (torch.float64, 1e-8),
     (torch.int64, 0.0), (torch.bool, 0.0), (torch.complex64, 1e-4), (torch.float8_e4m3fn, 1e-1)],
)
def test_the_default_tolerance_of_a_dtype(dtype: torch.dtype, tolerance: float) -> None:
    assert default_tolerance(dtype) == tolerance


_values = st.lists(st.floats(width=32), min_size=1, max_size=20)


@given(_values)
def test_an_output_equal_to_the_reference_always_passes(values: list[float]) -> None:
    reference = torch.tensor(values)
    assert judge(reference.clone(), reference).passed


@given(_values, st.data())
def test_an_output_passes_if_and_only_if_every_element_is_within_the_limit(
    values: list[float], data: st.DataObject
) -> None:
    reference = torch.tensor(values)
    output = torch.tensor(data.draw(st.lists(st.floats(width=32), min_size=len(values), max_size=len(values))))
    size = typical_size(reference)
    expected = 0
    for y, out in zip(reference.double().tolist(), output.double().tolist(), strict=True):
        if math.isfinite(y) and math.isfinite(out):
            expected += not (abs(out - y) <= 1e-4 * (size + abs(y)))
        else:
            expected += not (out == y or (math.isnan(out) and math.isnan(y)))
    # Exactly at the limit, division can round differently from multiplication.
    found = judge(output, reference)
    assert found.failed == expected or abs(found.worst_error - 1e-4) < 1e-15


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_values_whose_squares_overflow_are_compared(size: float) -> None:
    values = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * size
    limit = by_size(values, 1e-8)
    assert compare(values, values, values, limit).passed
    assert not compare(torch.zeros_like(values), values, values, limit).passed
    assert not compare(values * 1.001, values, values, limit).passed


def test_a_value_whose_square_overflows_is_wrong_without_an_exception() -> None:
    expected, got = torch.tensor(8.0, dtype=torch.float64), torch.tensor(1e200, dtype=torch.float64)
    assert not compare(got, expected, expected, by_size(expected, 1e-8)).passed


def test_both_parts_of_a_complex_value_are_compared_next_to_nan() -> None:
    expected = torch.complex(torch.tensor([math.nan, 1.0]), torch.tensor([2.0, 3.0]))
    assert judge(expected.clone(), expected).passed
    other = torch.complex(torch.tensor([math.nan, 1.0]), torch.tensor([0.0, 3.0]))
    assert judge(other, expected).failed == 1


def test_8_bit_floats_are_compared() -> None:
    values = torch.randn(100, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    assert judge(values, values, tolerance=default_tolerance(values.dtype)).passed
    assert not judge(values.float().mul(2).to(values.dtype), values, tolerance=0.1).passed


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.data())
def test_a_flat_index_is_converted_as_torch_does(shape: list[int], data: st.DataObject) -> None:
    flat = data.draw(st.lists(st.integers(0, math.prod(shape) - 1), min_size=1, max_size=5))
    expected = torch.unravel_index(torch.tensor(flat), shape)
    assert all(map(torch.equal, unravel(torch.tensor(flat), shape), expected))
    assert [unravel(each, shape) for each in flat] == list(zip(*(each.tolist() for each in expected), strict=True))
