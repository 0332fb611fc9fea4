from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.timing.statistics import (
    REPEATABILITY,
    RESOLUTION_MS,
    median_interval,
    midmean,
    paired_ratios,
    quantile,
    quartiles,
    widen_by_clock,
)

times = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)
a_few = st.lists(st.floats(0.1, 10), min_size=1, max_size=8)


def test_quantiles_interpolate_between_ranks() -> None:
    assert quartiles([4.0, 1.0, 3.0, 2.0]) == (1.75, 2.5, 3.25)
    assert quantile([10.0, 20.0], 0.3) == pytest.approx(13.0)
    assert (quantile([1.0, 2.0, 3.0], 0), quantile([1.0, 2.0, 3.0], 1), quantile([7.0], 0.4)) == (1.0, 3.0, 7.0)


@pytest.mark.parametrize(("samples", "share"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_invalid_quantiles_raise(samples: list[float], share: float) -> None:
    with pytest.raises(ValueError):
        quantile(samples, share)


MIDMEANS: list[tuple[list[float], float]] = [
    ([5.0], 5.0), ([1.0, 3.0], 2.0), ([1.0, 2.0, 99.0], 34.0), ([99.0, 2.0, 1.0, 3.0], 2.5),
    ([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 99.0], 3.5),
]


@pytest.mark.parametrize(("samples", "middle"), MIDMEANS)
def test_the_midmean_is_the_mean_of_the_middle_half(samples: list[float], middle: float) -> None:
    assert midmean(samples) == pytest.approx(middle)


def test_the_midmean_of_no_samples_raises() -> None:
    with pytest.raises(ValueError, match="no samples"):
        midmean([])


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=30))
def test_the_midmean_is_between_the_quartiles_and_ignores_outliers(samples: list[float]) -> None:
    ordered = sorted(samples)
    cut = len(samples) // 4
    assert ordered[cut] - 1e-6 <= midmean(samples) <= ordered[-cut - 1] + 1e-6
    assert midmean([*ordered[:-1], 1e12]) == pytest.approx(midmean(samples))


@given(times)
def test_quartiles_are_ordered_and_the_middle_one_is_the_median(samples: list[float]) -> None:
    low, middle, high = quartiles(samples)
    assert min(samples) <= low <= middle <= high <= max(samples)
    assert middle == pytest.approx(median(samples))


def test_ratios_pair_each_call_with_the_mean_of_its_neighbours() -> None:
    assert paired_ratios([10.0, 20.0, 40.0], [5.0, 10.0]) == [3.0, 3.0]


def test_a_call_without_a_time_is_skipped_without_shifting_others() -> None:
    assert paired_ratios([10.0, 20.0, 40.0, 40.0], [5.0, None, 10.0]) == [3.0, 4.0]


@pytest.mark.parametrize("references", [[], [1.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_times_that_cannot_be_paired_raise(references: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot pair"):
        paired_ratios(references, [1.0, 1.0])


@given(st.floats(1, 10), st.floats(-0.02, 0.02), st.floats(0.1, 10), st.integers(1, 20))
def test_a_linear_drift_cancels_out(start: float, drift: float, speedup: float, calls: int) -> None:
    def clock_speed(moment: int) -> float:  # reference and solution alternate
        return start + drift * moment

    references = [clock_speed(2 * call) for call in range(calls + 1)]
    solutions = [clock_speed(2 * call + 1) / speedup for call in range(calls)]
    assert paired_ratios(references, solutions) == pytest.approx([speedup] * calls)


@given(a_few)
def test_the_interval_contains_the_median(samples: list[float]) -> None:
    low, middle, high = median_interval(samples)
    assert min(samples) <= low <= middle <= high <= max(samples)
    assert middle == median(samples)


@given(a_few, st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_interval_scales_with_its_samples(samples: list[float], factor: float) -> None:
    scaled = median_interval([sample * factor for sample in samples])
    assert scaled == pytest.approx(tuple(end * factor for end in median_interval(samples)))


def test_equal_samples_have_an_interval_of_width_zero() -> None:
    assert median_interval([2.0] * 9) == (2.0, 2.0, 2.0)


def test_more_samples_give_a_narrower_and_reproducible_interval() -> None:
    secret_random = random.Random(1)
    samples = [secret_random.gauss(10, 1) for _ in range(400)]
    few, many = median_interval(samples[:20]), median_interval(samples)
    assert many[2] - many[0] < (few[2] - few[0]) / 2
    assert many == median_interval(samples)


def test_the_interval_covers_the_true_median_at_about_its_confidence() -> None:
    secret_random = random.Random(2)
    hits = 0
    for _ in range(60):
        low, _, high = median_interval([secret_random.gauss(10, 1) for _ in range(25)])
        hits += low <= 10 <= high
    assert hits >= 51


def test_the_interval_of_no_samples_raises() -> None:
    with pytest.raises(ValueError):
        median_interval([])


def test_an_interval_is_widened_by_errors_that_repetition_does_not_reduce() -> None:
    low, middle, high = widen_by_clock((1.0, 1.0, 1.0), reference_ms=1.0, solution_ms=0.5)
    share = RESOLUTION_MS / 0.5 + REPEATABILITY
    assert (low, middle, high) == (1 - share, 1.0, 1 + share)
    long_calls = widen_by_clock((1.0, 1.0, 1.0), reference_ms=1e6, solution_ms=1e6)
    assert long_calls[2] - 1 == pytest.approx(REPEATABILITY, rel=1e-3)


def test_a_time_below_the_resolution_gives_no_information() -> None:
    low, _, high = widen_by_clock((2.0, 2.0, 2.0), reference_ms=1.0, solution_ms=RESOLUTION_MS / 2)
    assert low == 0 and high == 4
