from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from inlinebench.compare import tolerance as module
from inlinebench.compare.tolerance import Comparison, Scale, compare, default_tolerance, measure_scale

NAN, INF = math.nan, math.inf


def judge(output: Tensor, reference: Tensor, oracle: Tensor | None = None, tolerance: float = 1e-4) -> Comparison:
    scale = Scale(0.0, 0.0)
    if reference.is_floating_point() or reference.is_complex():
        scale = measure_scale(reference if oracle is None else oracle, reference)
    return compare(output, reference, oracle, tolerance, scale)


@pytest.mark.parametrize(("error", "passes"), [(1.9e-4, True), (2.1e-4, False), (-1.9e-4, True), (-2.1e-4, False)])
def test_the_error_limit_is_the_tolerance_times_rms_plus_magnitude(error: float, passes: bool) -> None:
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


def test_an_output_that_is_more_accurate_than_the_reference_passes() -> None:
    oracle = torch.ones(10_000, dtype=torch.float64)
    reference = oracle.float()
    reference[5] += 0.1  # e is 1e-3: its allowance of 8e-3 does not bridge the gap
    assert judge(oracle.float(), reference, oracle).passed
    assert judge(reference.clone(), reference, oracle).passed
    between = oracle.float()
    between[5] += 0.05
    assert not judge(between, reference, oracle).passed
    assert not judge(oracle.float(), reference).passed, "without an oracle only the reference counts"


def test_an_output_that_is_zero_in_theory_may_have_rounding_errors_like_the_reference() -> None:
    oracle = torch.zeros(1000, dtype=torch.float64)
    reference = torch.randn(1000) * 1e-7
    assert judge(torch.randn(1000) * 1e-7, reference, oracle).passed
    assert not judge(torch.randn(1000) * 1e-5, reference, oracle).passed


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
    assert found.describe().endswith("of all); expected 1, got 0")


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


def test_only_finite_elements_count_for_the_scale() -> None:
    scale = measure_scale(torch.tensor([3.0, NAN, INF, 5.0]), torch.tensor([3.0, NAN, INF, 6.0]))
    assert scale.oracle_rms == pytest.approx(math.sqrt(17))
    assert scale.reference_error_rms == pytest.approx(math.sqrt(0.5))
    assert measure_scale(torch.tensor([NAN]), torch.tensor([NAN])) == Scale(0.0, 0.0)


def mostly_clamped(share: float) -> tuple[Tensor, Tensor]:
    """Returns an oracle in which all but a share of the values are clamped to zero, and a rounded reference."""
    values = torch.rand(100_000, dtype=torch.float64) - share
    rounded = (values.float() + 3).sub(3).double()  # by what is lost at a size of 3
    return values.clamp(max=0), rounded.clamp(max=0)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_clamped_elements_do_not_reduce_the_allowance_for_rounding(shift: float) -> None:
    oracle, reference = (values + shift for values in mostly_clamped(1e-2))
    scale = measure_scale(oracle, reference)
    below = reference < shift
    assert 0 < scale.reference_error_rms < 0.2 * scale.unclamped_error_rms
    assert scale.unclamped_rms == pytest.approx(float(oracle[below].square().mean().sqrt()), rel=1e-2)
    other = torch.where(below, oracle - 2e-7, oracle)  # rounded in the other direction
    assert judge(other.float(), reference.float(), oracle).passed
    assert judge(torch.where(reference == shift, oracle - 2e-7, oracle).float(), reference.float(), oracle).passed
    if shift == 0:
        assert not judge(torch.where(below, oracle - 4e-6, oracle).float(), reference.float(), oracle).passed
        assert judge(torch.zeros(100_000), reference.float(), oracle).failed > 50


def test_all_elements_count_if_few_are_clamped() -> None:
    oracle = torch.randn(10_000, dtype=torch.float64).clamp(min=0)  # half of them
    reference = (oracle.float() * (1 + 1e-6)).double()
    scale = measure_scale(oracle[:4000], reference[:4000].clone().fill_(2.0))
    assert scale.unclamped_error_rms == 0.0  # all elements are clamped
    values = torch.randn(10_000, dtype=torch.float64)
    assert measure_scale(values, values.float()).unclamped_rms == 0.0


@pytest.mark.parametrize(("dtype", "tolerance", "size"), [
    (torch.bfloat16, 1e-2, 30.0), (torch.float16, 1e-2, 300.0), (torch.float32, 1e-4, 300.0),
])
def test_a_few_large_sums_do_not_loosen_the_tolerance_of_many_copies(
    dtype: torch.dtype, tolerance: float, size: float
) -> None:
    """Copied elements are exact, so the rounding of the sums must not excuse errors in them."""
    oracle = torch.cat([torch.randn(100_000).to(dtype).double(), size * (1 + torch.rand(4, dtype=torch.float64))])
    reference = oracle.to(dtype)
    if dtype is torch.float32:
        reference[-4:] *= 1 + 3e-6
    output = reference.clone()
    output[:-4] *= 1 + 10 * tolerance
    assert judge(reference, reference, oracle, tolerance).passed
    assert judge(output, reference, oracle, tolerance).failed > 1000


def test_a_few_elements_with_large_errors_do_not_loosen_the_tolerance() -> None:
    values = torch.randn(100_000, dtype=torch.float64) * 3
    oracle, reference = values.round(), values.round()
    reference[500:510] += 1  # values near one half that were rounded in the other direction
    output = reference.clone()
    assert judge(output.float(), reference.float(), oracle).passed
    output[700] += 1
    assert judge(output.float(), reference.float(), oracle).failed == 1


def test_errors_as_shares_of_a_scale() -> None:
    scale = Scale(2.0, 0.5, 4.0, 1.0)
    assert scale.errors_of(scale) == (0.25, 0.25)
    assert Scale(8.0, 0.0, 2.0, 0.0).with_errors((0.25, 0.5)) == Scale(8.0, 2.0, 2.0, 1.0)
    assert Scale(0.0, 2.0).errors_of(Scale(8.0, 0.0)) == (0.25, 0.0)  # the oracle is exactly 0
    assert Scale(0.0, 0.0).errors_of(Scale(0.0, 0.0)) == (0.0, 0.0)


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
    rms = measure_scale(reference, reference).oracle_rms
    expected = 0
    for y, out in zip(reference.double().tolist(), output.double().tolist(), strict=True):
        if math.isfinite(y) and math.isfinite(out):
            expected += not (abs(out - y) <= 1e-4 * (rms + abs(y)))
        else:
            expected += not (out == y or (math.isnan(out) and math.isnan(y)))
    # Exactly at the limit, division can round differently from multiplication.
    found = judge(output, reference)
    assert found.failed == expected or abs(found.worst_error - 1e-4) < 1e-15


def test_the_value_of_masked_elements_does_not_count_for_the_scale() -> None:
    scores = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    masked = scores.masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), -1e9)
    scale = measure_scale(masked.double(), masked)
    assert scale.oracle_rms == pytest.approx(float(scores.tril().square().sum() / 2080) ** 0.5, rel=0.01)
    assert compare(masked, masked, masked.double(), 1e-4, scale).passed
    zeros = torch.zeros(64, 64).masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), -1e9)
    assert not compare(zeros, masked, masked.double(), 1e-4, scale).passed


def test_a_single_large_value_counts_for_the_scale() -> None:
    values = torch.ones(1000)
    values[7] = -1e6
    assert measure_scale(values, values).oracle_rms == pytest.approx(1e6 / 1000**0.5, rel=1e-3)


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_values_whose_squares_overflow_are_compared(size: float) -> None:
    values = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * size
    scale = measure_scale(values, values)
    assert compare(values, values, values, 1e-8, scale).passed
    assert not compare(torch.zeros_like(values), values, values, 1e-8, scale).passed
    assert not compare(values * 1.001, values, values, 1e-8, scale).passed


def test_a_value_whose_square_overflows_is_wrong_without_an_exception() -> None:
    expected, got = torch.tensor(8.0, dtype=torch.float64), torch.tensor(1e200, dtype=torch.float64)
    assert not compare(got, expected, expected, 1e-8, measure_scale(expected, expected)).passed


def test_both_parts_of_a_complex_value_are_compared_next_to_nan() -> None:
    expected = torch.complex(torch.tensor([math.nan, 1.0]), torch.tensor([2.0, 3.0]))
    scale = measure_scale(expected, expected)
    assert compare(expected.clone(), expected, None, 1e-4, scale).passed
    other = torch.complex(torch.tensor([math.nan, 1.0]), torch.tensor([0.0, 3.0]))
    assert compare(other, expected, None, 1e-4, scale).failed == 1


def test_8_bit_floats_are_compared() -> None:
    values = torch.randn(100, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    scale = measure_scale(values, values)
    assert compare(values, values, None, default_tolerance(values.dtype), scale).passed
    assert not compare(values.float().mul(2).to(values.dtype), values, None, 0.1, scale).passed


def test_elements_that_large_values_do_not_reach_are_compared_at_their_own_scale() -> None:
    oracle = torch.randn(10_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain = measure_scale(oracle, oracle).oracle_rms
    oracle[::4096] *= 1e6
    assert measure_scale(oracle, oracle).oracle_rms > 100 * plain
    assert measure_scale(oracle, oracle, without_largest=True).oracle_rms == pytest.approx(plain, rel=0.1)


def test_a_scale_without_the_largest_elements_is_not_zero_for_sparse_outputs() -> None:
    sparse = torch.zeros(1000, dtype=torch.float64)
    sparse[0] = 2.0
    assert measure_scale(sparse, sparse, without_largest=True).oracle_rms == measure_scale(sparse, sparse).oracle_rms
