"""Sequential tests of a median: exact, seldom wrong however often one looks, and soon certain."""

from __future__ import annotations

import random
from math import comb, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.timing.sequential import ERROR, evidence, is_above, is_below


@given(st.integers(0, 60), st.data())
def test_evidence_is_the_mean_over_all_bets(of: int, data: st.DataObject) -> None:
    count, steps = data.draw(st.integers(0, of)), 2000
    bets = [0.5 + (step + 0.5) / (2 * steps) for step in range(steps)]
    mean = sum((2 * bet) ** count * (2 * (1 - bet)) ** (of - count) for bet in bets) / steps
    assert evidence(count, of) == pytest.approx(mean, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("of", [0, 1, 7, 40])
def test_evidence_is_fair(of: int) -> None:
    """With a probability of one half, the expected capital stays at what the gambler began with."""
    assert sum(comb(of, count) / 2**of * evidence(count, of) for count in range(of + 1)) == pytest.approx(1)


@pytest.mark.slow
def test_it_is_seldom_wrong_if_one_looks_after_every_sample() -> None:
    generator, wrong, runs = random.Random(1), 0, 2000
    for _ in range(runs):
        above, low = 0, False
        for of in range(1, 201):
            above += generator.random() < 0.5
            low |= evidence(above, of) >= 1 / ERROR
        wrong += low
    assert 0 < wrong < ERROR * runs


def test_a_naive_look_after_every_sample_is_often_wrong() -> None:
    """What the test is for: the same runs, by the interval of a fixed number of samples."""
    generator, wrong, runs = random.Random(1), 0, 400
    for _ in range(runs):
        above, low = 0, False
        for of in range(1, 201):
            above += generator.random() < 0.5
            low |= of >= 10 and above > of / 2 + 0.98 * of**0.5
        wrong += low
    assert wrong > 0.15 * runs


def test_samples_that_agree_decide_after_ten_and_equal_ones_never() -> None:
    assert not is_above([2.0] * 8, 1.0) and is_above([2.0] * 10, 1.0) and is_below([0.5] * 10, 1.0)
    assert not is_above([1.0] * 100, 1.0) and not is_below([1.0] * 100, 1.0)
    assert not is_above([], 1.0) and is_above([inf] * 10, 1.0)


@given(st.lists(st.floats(0.1, 10), max_size=60), st.floats(0.1, 10))
def test_a_median_is_not_on_both_sides(samples: list[float], value: float) -> None:
    assert not (is_above(samples, value) and is_below(samples, value))
    assert is_above(samples, value) == is_below([-sample for sample in samples], -value)
