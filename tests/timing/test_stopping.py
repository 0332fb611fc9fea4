from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.messages import Settings
from inlinebench.sandbox.policy import Sandbox
from inlinebench.sandbox.watchdog import Limits
from inlinebench.timing.statistics import median_interval, rank_interval
from inlinebench.timing.stopping import ALL_MADE, Decided, Precise, Sampling, Settled

SAMPLING = Sampling(least=20, most=200, budget_s=5.0, half_width=0.005)


def fail() -> float:
    raise AssertionError("without times there is no margin")


def noisy(spread: float, count: int, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(2.0, 2.0 * spread) for _ in range(count)]


def stops_at(spread: float, sampling: Sampling = SAMPLING, seconds_a_call: float = 0.0) -> tuple[int, str]:
    ratios = noisy(spread, 1000)
    for counted in range(1, 1001):
        if stop := sampling.stop(counted, counted * seconds_a_call, lambda end=counted: ratios[:end],
                                     lambda: 0.0):  # type: ignore[misc]
            return counted, stop
    raise AssertionError("it never stops")


def test_precise_samples_stop_at_the_least_number_of_calls() -> None:
    assert stops_at(0.001) == (20, Precise.name)


def test_noisier_samples_continue_until_the_interval_is_narrow_enough() -> None:
    counted, why = stops_at(0.01)
    assert 20 < counted < 100
    assert why == Precise.name
    assert not Precise(0.005).met(noisy(0.01, 1000)[: counted - 1])


def test_the_workloads_of_a_set_share_the_limits() -> None:
    assert stops_at(0.3, SAMPLING.shared_by(1)) == stops_at(0.3)
    assert stops_at(0.3, SAMPLING.shared_by(4)) == (50, ALL_MADE)
    assert stops_at(0.3, SAMPLING.shared_by(12)) == (20, ALL_MADE)
    assert stops_at(0.3, SAMPLING.shared_by(2), seconds_a_call=0.1) == (25, "time budget")
    assert stops_at(0.001, SAMPLING.shared_by(4)) == (20, Precise.name)


def test_settled_noise_stops_sampling() -> None:
    counted, why = stops_at(0.3)
    assert (why, 64 <= counted < 200) == (Settled.name, True)


def test_growing_noise_has_not_settled() -> None:
    assert not Settled().met([1.0 + 0.002 * index * (-1) ** index for index in range(100)])


def test_time_and_number_of_calls_are_bounded() -> None:
    assert stops_at(0.3, seconds_a_call=0.2) == (25, "time budget")
    assert stops_at(0.3, seconds_a_call=1.0) == (20, "time budget")  # never fewer than the least
    assert stops_at(0.3, Sampling(20, 30, 5.0, 0.005)) == (30, ALL_MADE)
    assert stops_at(0.3, SAMPLING.fixed) == (20, ALL_MADE)


def test_sampling_stops_when_the_speedup_is_known_to_be_on_one_side() -> None:
    """The speedup is 2, with a noise that takes more calls to be precise."""
    for value, counted in ((1.0, 20), (4.0, 20), (1.9, 20)):
        assert stops_at(0.02, replace(SAMPLING, at_least=value)) == (counted, Decided.name)
    counted, why = stops_at(0.03, replace(SAMPLING, at_least=1.97))
    assert 20 < counted < stops_at(0.03)[0] and why == Decided.name
    assert stops_at(0.03, replace(SAMPLING, at_least=2.0)) == stops_at(0.03)


def test_an_error_that_all_calls_share_keeps_the_side_unknown() -> None:
    ratios = noisy(0.02, 100)
    assert Decided(1.9, margin=0.01).met(ratios) and not Decided(1.9, margin=0.06).met(ratios)
    assert Decided(2.1, margin=0.01).met(ratios) and not Decided(2.1, margin=0.06).met(ratios)
    assert not Decided(1.0, margin=1.0).met(ratios)


def test_only_speedups_that_share_no_call_of_the_reference_count() -> None:
    ratios = [2.0, 0.5] * 20
    assert Decided(1.0, margin=0.0).met(ratios) and not Decided(1.0, margin=0.0).met(ratios[:16])


def test_without_usable_times_sampling_continues_to_its_bounds() -> None:
    assert SAMPLING.stop(100, 1.0, list, fail) is None
    assert SAMPLING.stop(100, 6.0, list, fail) == "time budget"
    assert SAMPLING.stop(200, 1.0, list, fail) == ALL_MADE


def test_a_largest_number_of_calls_below_the_least_raises() -> None:
    with pytest.raises(ValueError, match=r"\(5\) is below the least \(20\)"):
        Sampling(20, 5, 1.0, 0.005)


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60))
def test_the_rank_interval_contains_the_median(samples: list[float]) -> None:
    low, middle, high = rank_interval(samples)
    assert min(samples) <= low <= middle <= high <= max(samples)


def test_the_rank_interval_agrees_with_the_bootstrap() -> None:
    samples = noisy(0.01, 60)
    ranks, bootstrap = rank_interval(samples), median_interval(samples)
    assert ranks[1] == bootstrap[1]
    assert (ranks[2] - ranks[0]) == pytest.approx(bootstrap[2] - bootstrap[0], rel=0.35)


def test_the_rank_interval_of_a_worked_example() -> None:
    # 25 samples: 12.5 -+ 0.98 * 5 = 7.6 and 17.4, so the 8th and the 19th of the sorted samples.
    assert rank_interval([float(value) for value in range(25)]) == (7.0, 12.0, 18.0)


def test_the_judge_samples_as_its_options_say() -> None:
    settings = Settings(device="cpu", seed=1, sandbox=Sandbox(), limits=Limits(1 << 30), cache=Path("cache"),
                        at_least=1.5)
    assert settings.sampling == replace(SAMPLING, at_least=1.5)
