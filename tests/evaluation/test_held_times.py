from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.evaluation.integrity.held_calls import QUIET
from inlinebench.evaluation.integrity.held_times import (
    FEWEST,
    FEWEST_OF_A_KIND,
    MOST,
    PRECISE_MS,
    PRECISION,
    HeldTimes,
    StandInTime,
)

OWN_MS, PROTOCOL_MS = 0.17, 0.6
ROOT = math.sqrt(2)
SCATTER_MS = 0.01
"""The scatter of a difference of two held calls on an H100, as a standard deviation."""

KINDS = ("plain", "negated", "signs")

times = st.floats(0.0015, 20.0)
seeds = st.integers(0, 1 << 30)


def held(
    reported: float, true: Callable[[str], float] | float, seed: int = 0, *, slowed: float = 0.0,
    scatter: float = SCATTER_MS, quiet: bool = True
) -> HeldTimes:
    """Makes calls of a solution that takes `true` ms until its time is known precisely.

    `slowed` is by how many ms work of the solution's slows down the stand-in.
    """
    source = random.Random(seed)
    found = HeldTimes(reported, KINDS)

    def stand_in(slower: float = 0.0) -> StandInTime:
        return StandInTime(PROTOCOL_MS + OWN_MS + slower + source.gauss(0, scatter / ROOT), OWN_MS)

    while not found.precise:
        kind = source.choice(KINDS)
        ms = true if isinstance(true, float) else true(kind)
        found.add(kind, PROTOCOL_MS + ms + source.gauss(0, scatter / ROOT), stand_in(slowed))
    found.quiet = tuple([stand_in() for _ in range(QUIET)] for _ in range(2)) if quiet else ()
    return found


@settings(max_examples=300, deadline=None)
@given(true=times, seed=seeds)
def test_a_true_time_stands(true: float, seed: int) -> None:
    assert held(true, true, seed).judged_ms is None


@settings(max_examples=200, deadline=None)
@given(true=times, seed=seeds, share=st.floats(0.01, 0.7))
def test_a_time_that_is_too_short_by_more_than_the_tolerance_is_replaced_by_the_true_one(
    true: float, seed: int, share: float
) -> None:
    reported = true * share - 0.02
    if reported <= 0:
        return
    judged = held(reported, true, seed).judged_ms
    assert judged is not None and judged == pytest.approx(true, abs=0.025)


@pytest.mark.parametrize(("true", "most"), [(0.002, MOST), (0.1, MOST), (1.0, 3 * FEWEST), (10.0, 3 * FEWEST)])
def test_a_short_time_takes_more_calls(true: float, most: int) -> None:
    found = held(true, true)
    spread = found.measured
    assert FEWEST <= len(found) <= most and spread.calls == len(found)
    assert spread.low <= true <= spread.high
    assert spread.high - spread.median <= max(PRECISION * true, 1.5 * PRECISE_MS)


def test_how_many_calls_are_made_does_not_depend_on_the_reported_time() -> None:
    assert len({len(held(reported, 0.1, seed=1)) for reported in (0.001, 0.05, 0.09, 0.1, 0.2)}) == 1


@pytest.mark.parametrize("scatter", [0.005, 0.01, 0.03])
def test_of_300_true_times_of_a_short_kernel_nearly_all_stand(scatter: float) -> None:
    replaced = sum(held(0.002, 0.002, seed, scatter=scatter).judged_ms is not None for seed in range(300))
    assert replaced <= 1


@pytest.mark.parametrize(("true", "hidden"), [(0.01, 0.01), (0.1, 0.012), (1.0, 0.06), (10.0, 0.6)])
def test_more_than_the_judges_error_is_not_hidden(true: float, hidden: float) -> None:
    replaced = sum(held(true - hidden, true, seed).judged_ms is not None for seed in range(200))
    assert replaced >= 195


def test_each_kind_of_inputs_is_called() -> None:
    found = HeldTimes(1.0, ("plain", "signs"))
    for _ in range(MOST):
        found.add("plain", PROTOCOL_MS + 1.0, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
        assert not found.precise
    for _ in range(FEWEST_OF_A_KIND):
        assert not found.precise
        found.add("signs", PROTOCOL_MS + 1.0, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    assert found.precise


@pytest.mark.parametrize(("reported", "true", "contradicted"), [
    (0.05, 1.07, True), (1.0, 2.2, True), (0.127, 0.191, False), (0.1046, 0.26, False), (1.0, 1.0, False),
])
def test_only_times_that_no_disturbance_explains_contradict_each_other(
    reported: float, true: float, contradicted: bool
) -> None:
    assert held(reported, true).contradicted is contradicted


def test_a_kind_of_inputs_that_alone_takes_longer_decides() -> None:
    found = held(1.0, lambda kind: 1.4 if kind == "signs" else 1.0, seed=3)
    assert found.judged_ms == pytest.approx(1.4, abs=0.02)


def test_times_that_depend_on_the_inputs_stand_if_the_slowest_ones_are_reported() -> None:
    assert held(1.4, lambda kind: 1.4 if kind == "signs" else 1.0).judged_ms is None


def test_a_solution_that_slows_down_the_stand_in_gains_nothing() -> None:
    assert held(0.06, 1.07, slowed=1.01, quiet=False).judged_ms is None, "the attack works without quiet stand-ins"
    assert held(0.06, 1.07, slowed=1.01).judged_ms == pytest.approx(1.07, abs=0.02)
    assert held(0.06, 1.07, slowed=1.01).contradicted


@pytest.mark.parametrize("true", [0.2, 2.0, 10.0])
@pytest.mark.parametrize("seed", range(40))
def test_a_true_time_stands_although_the_solution_scatters_by_itself(true: float, seed: int) -> None:
    source = random.Random(-1 - seed)
    assert held(true, lambda _: true * (1 + source.gauss(0, 0.05)), seed).judged_ms is None


def scattered(reported: float, true: float, more: float, every: int) -> HeldTimes:
    """Makes calls of a solution that takes `more` ms longer in each call with a number that `every` divides."""
    source = random.Random(1)
    found = HeldTimes(reported, KINDS)
    while not found.precise:
        ms = true + (more if len(found) % every == 0 else 0.0)
        stand_in = StandInTime(PROTOCOL_MS + OWN_MS + source.gauss(0, SCATTER_MS / 2), OWN_MS)
        found.add(KINDS[len(found) % len(KINDS)], PROTOCOL_MS + ms + source.gauss(0, SCATTER_MS), stand_in)
    found.quiet = ([StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS)] * QUIET,)
    return found


@pytest.mark.parametrize("true", [0.05, 0.2, 1.0, 10.0])
def test_a_solution_that_scatters_on_purpose_gains_nothing(true: float) -> None:
    found = scattered(0.1 * true, true, more=12 * true, every=3)
    assert found.judged_ms is not None and found.judged_ms >= true - 0.02
    assert found.contradicted or true < 0.2


def test_the_scatter_of_slowed_stand_ins_is_not_allowed_for() -> None:
    found = HeldTimes(0.06, KINDS)
    for number in range(MOST):
        slowed = 5.0 if number % 3 == 0 else 0.0
        found.add(KINDS[number % len(KINDS)], PROTOCOL_MS + 1.07, StandInTime(PROTOCOL_MS + OWN_MS + slowed, OWN_MS))
    found.quiet = ([StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS)] * QUIET,)
    assert found.contradicted


@pytest.mark.parametrize("drift", [-0.03, 0.03])
def test_stand_ins_that_drift_say_nothing_against_a_true_time(drift: float) -> None:
    for seed in range(40):
        found, source = held(0.002, 0.002, seed, quiet=False), random.Random(seed)
        windows = [[StandInTime(PROTOCOL_MS + OWN_MS + shift + source.gauss(0, SCATTER_MS), OWN_MS)
                    for _ in range(QUIET)] for shift in (drift, -drift)]
        found.quiet = tuple(windows)
        assert found.judged_ms is None
