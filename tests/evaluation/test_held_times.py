from __future__ import annotations

import random
from collections.abc import Callable, Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.evaluation.integrity.held_calls import QUIET
from inlinebench.evaluation.integrity.held_times import (
    DRIFT_MS,
    FEWEST,
    FEWEST_OF_A_KIND,
    MOST,
    HeldTimes,
    StandInTime,
)

OWN_MS, PROTOCOL_MS = 0.17, 0.6
KINDS = ("plain", "negated", "signs")
PROCESSES_MS, DISTURBED_MS = 0.03, 0.15
"""By how much changes between processes make a half of the calls longer, and how much longer a disturbance makes a
tenth of them, as on an H100."""

times = st.floats(0.0015, 20.0)
seeds = st.integers(0, 1 << 30)


class Machine:
    """Times of the protocol in ms: in one of two states, with noise, and sometimes disturbed."""

    def __init__(self, seed: int, *, noise: float = 0.005, slow_share: float = 0.5) -> None:
        self._source, self._noise, self._slow_share = random.Random(seed), noise, slow_share
        self._kinds: list[str] = []

    def kind(self, wanted: Collection[str]) -> str:
        """Returns a wanted kind of inputs."""
        while True:
            self._kinds = self._kinds or self._source.sample(KINDS, len(KINDS))
            if (kind := self._kinds.pop()) in wanted:
                return kind

    def protocol(self) -> float:
        source = self._source
        slower = PROCESSES_MS if source.random() < self._slow_share else 0.0
        disturbed = source.expovariate(1 / DISTURBED_MS) if source.random() < 0.1 else 0.0
        return PROTOCOL_MS + slower + disturbed + abs(source.gauss(0, self._noise))

    def stand_in(self, slowed: float = 0.0) -> StandInTime:
        return StandInTime(self.protocol() + OWN_MS + slowed, OWN_MS)

    def quiet(self) -> list[StandInTime]:
        return [self.stand_in() for _ in range(QUIET)]


def allowed(ms: float, **others: float) -> dict[str, float]:
    """The same time on each kind of inputs but for `others`, in ms."""
    return dict.fromkeys(KINDS, ms) | others


def held(
    allows: float | dict[str, float], true: Callable[[str], float] | float, seed: int = 0, *, slowed: float = 0.0,
    noise: float = 0.005, quiet: bool = True
) -> HeldTimes:
    """Makes calls of a solution that takes `true` ms until more would not help.

    `slowed` is by how many ms work of the solution's slows down the stand-in.
    """
    machine, idle = Machine(seed, noise=noise), Machine(-1 - seed, noise=noise)
    allowed_ms = allows if isinstance(allows, dict) else allowed(allows)
    found = HeldTimes(allowed_ms, idle.quiet() if quiet else ())
    while wanted := found.wanted:
        kind = machine.kind(wanted)
        ms = true if isinstance(true, float) else true(kind)
        found.add(kind, machine.protocol() + ms, machine.stand_in(slowed))
    found.after = idle.quiet() if quiet else ()
    return found


def judged_ms(found: HeldTimes) -> float:
    assert found.judged is not None
    return found.judged.ms


@settings(max_examples=300, deadline=None)
@given(true=times, seed=seeds)
def test_a_true_time_stands(true: float, seed: int) -> None:
    assert held(true, true, seed).judged is None


@settings(max_examples=200, deadline=None)
@given(true=times, seed=seeds, share=st.floats(0.01, 0.9))
def test_a_time_that_is_too_short_by_more_than_the_tolerance_is_replaced_by_the_true_one(
    true: float, seed: int, share: float
) -> None:
    reported = true * share - 0.03
    if reported <= 0:
        return
    judged = held(reported, true, seed).judged
    assert judged is not None and judged.allowed_ms == pytest.approx(reported)
    assert true - 0.015 <= judged.ms <= true + 0.08


@pytest.mark.parametrize("noise", [0.003, 0.005, 0.01])
def test_true_times_of_a_short_kernel_stand_after_few_calls(noise: float) -> None:
    made = [held(0.002, 0.002, seed, noise=noise) for seed in range(300)]
    assert not any(found.judged for found in made)
    assert sorted(map(len, made))[150] <= 2 * FEWEST


@pytest.mark.parametrize(("true", "hidden"), [(0.04, 0.035), (0.1, 0.035), (1.0, 0.075), (10.0, 0.6)])
def test_more_than_tolerance_and_scatter_is_not_hidden(true: float, hidden: float) -> None:
    assert all(held(true - hidden, true, seed).judged for seed in range(200))


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_times_against_the_reported_one_come_from_many_calls(share: float) -> None:
    found = held(share * 1.0, 1.0)
    assert len(found) == MOST and found.measured.calls == MOST
    assert found.judged is not None
    assert found.measured.low <= found.measured.median <= found.measured.high == found.judged.ms
    assert len(held(1.0, 1.0)) <= FEWEST + 2


def test_each_kind_of_inputs_is_called() -> None:
    found = HeldTimes({"plain": 1.0, "signs": 1.0})
    for _ in range(MOST):
        found.add("plain", PROTOCOL_MS + 1.0, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
        assert "signs" in found.wanted
    for _ in range(FEWEST_OF_A_KIND):
        assert found.wanted == ["signs"]
        found.add("signs", PROTOCOL_MS + 1.0, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    assert not found.wanted


def test_kinds_of_inputs_that_are_too_slow_get_the_further_calls() -> None:
    found = HeldTimes(allowed(1.0))
    while "plain" in found.wanted:
        for kind in KINDS:
            took = PROTOCOL_MS + (1.2 if kind == "signs" else 1.0)
            found.add(kind, took, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    assert found.wanted == ["signs"] and judged_ms(found) == pytest.approx(1.2)
    found.add("signs", PROTOCOL_MS + 1.01, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    assert not found.wanted and found.judged is None


@pytest.mark.parametrize(("reported", "true", "contradicted"), [
    (0.05, 1.07, True), (1.0, 2.2, True), (0.127, 0.191, False), (0.1046, 0.26, False), (1.0, 1.0, False),
])
def test_only_times_that_no_disturbance_explains_contradict_each_other(
    reported: float, true: float, contradicted: bool
) -> None:
    assert held(reported, true).contradicted is contradicted


def test_a_kind_of_inputs_that_alone_takes_longer_decides() -> None:
    found = held(1.0, lambda kind: 1.4 if kind == "signs" else 1.0, seed=3)
    assert judged_ms(found) == pytest.approx(1.4, abs=0.02)


def test_times_that_depend_on_the_inputs_stand_if_the_slowest_ones_are_reported() -> None:
    assert held(1.4, lambda kind: 1.4 if kind == "signs" else 1.0).judged is None


@pytest.mark.parametrize("seed", range(40))
def test_times_stand_that_depend_on_the_inputs_as_those_of_the_reference_do(seed: int) -> None:
    """As with PyTorch's softmax of few long rows, which takes half as long again on some inputs."""
    assert held(allowed(0.040, signs=0.060), lambda kind: 0.060 if kind == "signs" else 0.040, seed).judged is None
    assert held(allowed(40.0, signs=60.0), lambda kind: 60.0 if kind == "signs" else 40.0, seed).judged is None


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("slow", KINDS)
def test_more_time_on_one_kind_of_inputs_hides_nothing_on_others(slow: str, seed: int) -> None:
    true = {"plain": 1.0, "negated": 1.0, "signs": 1.5}
    found = held(true, lambda kind: true[kind] * (1.5 if kind == slow else 1.0), seed)
    assert found.judged is not None and found.judged.factor == pytest.approx(1.5, abs=0.05)


def test_the_kinds_of_inputs_with_more_time_are_doubtful_if_calls_on_them_take_it() -> None:
    assert held(allowed(1.0), 1.0).doubtful == []
    assert held(allowed(1.0, signs=1.5), 1.0).doubtful == []
    assert held(allowed(1.0, signs=1.5), lambda kind: 1.5 if kind == "signs" else 1.0).doubtful == ["signs"]


def test_less_time_may_turn_out_to_be_allowed() -> None:
    """A solution may have slowed down the reference on one kind of inputs."""
    found = held(allowed(1.0, signs=3.0), lambda kind: 3.0 if kind == "signs" else 1.0)
    assert found.judged is None and found.doubtful == ["signs"]
    found.allowed_ms |= {"signs": 1.0}
    assert found.contradicted and judged_ms(found) == pytest.approx(3.0, abs=0.05)


def test_a_true_time_stands_if_less_time_turns_out_to_be_allowed() -> None:
    """A disturbance made the reference slower on one kind of inputs. No more calls can be made when this is known."""
    found = HeldTimes(allowed(0.09, signs=0.12))
    while wanted := found.wanted:
        kind = sorted(wanted)[len(found) % len(wanted)]
        slower = 0.03 if kind == "signs" and len(found) < FEWEST else 0.0
        found.add(kind, PROTOCOL_MS + 0.09 + slower, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    found.allowed_ms |= {"signs": 0.09}
    assert found.judged is None and len(found) < 2 * FEWEST


def test_a_solution_that_slows_down_the_stand_in_gains_at_most_the_scatter_and_drift_of_quiet_ones() -> None:
    assert held(0.06, 1.07, slowed=1.01, quiet=False).judged is None, "the attack works without quiet stand-ins"
    for seed in range(40):
        found = held(0.06, 1.07, seed, slowed=1.01)
        assert found.contradicted and judged_ms(found) >= 1.07 - 2 * DISTURBED_MS - DRIFT_MS


@pytest.mark.parametrize("true", [0.2, 2.0, 10.0])
@pytest.mark.parametrize("seed", range(40))
def test_a_true_time_stands_although_the_solution_scatters_by_itself(true: float, seed: int) -> None:
    source = random.Random(-1 - seed)
    assert held(true, lambda _: true * (1 + source.gauss(0, 0.05)), seed).judged is None


@pytest.mark.parametrize("true", [0.05, 0.2, 1.0, 10.0])
@pytest.mark.parametrize("every", [2, 3])
def test_a_solution_that_scatters_on_purpose_gains_nothing(true: float, every: int) -> None:
    count = iter(range(MOST))
    found = held(0.1 * true, lambda _: true * (12 if next(count) % every == 0 else 1))
    assert judged_ms(found) >= true - 0.015
    assert found.contradicted or true < 0.2


def test_a_solution_that_is_slow_in_most_calls_is_not_judged_by_its_few_fast_ones() -> None:
    count = iter(range(MOST))
    found = held(0.5, lambda _: 0.5 if next(count) % 10 == 0 else 1.0)
    assert judged_ms(found) == pytest.approx(1.0, abs=0.3) and judged_ms(found) > 0.6


@pytest.mark.parametrize(("slow_ms", "rejected"), [(10.0, True), (1.0, False)])
def test_a_solution_that_is_fast_in_a_third_of_its_calls_gains_no_more_than_disturbances_explain(
    slow_ms: float, rejected: bool
) -> None:
    count = iter(range(MOST))
    found = held(0.5, lambda _: 0.5 if next(count) % 3 == 0 else slow_ms)
    assert found.contradicted is rejected
    assert not rejected or judged_ms(found) == pytest.approx(slow_ms, abs=0.3)


def test_half_of_the_calls_may_be_disturbed() -> None:
    source, found = random.Random(1), HeldTimes(allowed(0.5))
    while wanted := found.wanted:
        kind = source.choice(list(wanted))
        took = PROTOCOL_MS + 0.5 + (0.3 if len(found) % 2 else 0.0)
        found.add(kind, took, StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS))
    assert found.judged is None


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("fast_before", [True, False])
def test_a_machine_that_changes_its_state_says_nothing_against_a_true_time(seed: int, fast_before: bool) -> None:
    slow, fast = Machine(seed, slow_share=1.0), Machine(-1 - seed, slow_share=0.0)
    before, after = (fast, slow) if fast_before else (slow, fast)
    found = HeldTimes(allowed(0.002), before.quiet())
    while wanted := found.wanted:
        found.add(slow.kind(wanted), slow.protocol() + 0.002, slow.stand_in())
    found.after = after.quiet()
    assert found.judged is None


def paired(hidden: float, quiet_ms: float, drift: Callable[[int, str], tuple[float, float]]) -> HeldTimes:
    """Makes calls that the host makes longer, and stand-ins, by what `drift` returns, in ms, for their number and kind.

    The solution takes `hidden` ms longer than is allowed. Quiet stand-ins are longer by `quiet_ms`.
    """
    quiet = [StandInTime(PROTOCOL_MS + OWN_MS + quiet_ms, OWN_MS)] * QUIET
    found = HeldTimes(allowed(0.002), quiet)
    while wanted := found.wanted:
        kind = min(wanted)
        call, stand_in = drift(len(found), kind)
        found.add(kind, PROTOCOL_MS + 0.002 + hidden + call, StandInTime(PROTOCOL_MS + OWN_MS + stand_in, OWN_MS))
    found.after = quiet
    return found


@pytest.mark.parametrize("hidden", [0.0, 0.02])
def test_a_host_that_becomes_slower_during_the_calls_changes_no_difference(hidden: float) -> None:
    def drift(number: int, kind: str) -> tuple[float, float]:
        if number < FEWEST:  # calls on one kind are disturbed at first, so this kind is called again
            return (0.1 if kind == "signs" else 0.0), 0.0
        return 0.03, 0.03

    found = paired(hidden, 0.03, drift)
    assert len(found) > FEWEST
    assert (found.judged is not None) is (hidden > 0)


@pytest.mark.parametrize("hidden", [0.0, 0.02])
def test_a_host_that_is_slower_during_the_calls_than_before_and_after_changes_no_difference(hidden: float) -> None:
    found = paired(hidden, 0.0, lambda number, kind: (0.02, 0.02))
    assert (found.judged is not None) is (hidden > 0)


def test_calls_are_made_until_the_time_stands_against_stand_ins_from_before_as_well() -> None:
    """A machine that was fast before the solution was loaded is slower for a while than its drift explains."""
    quiet = [StandInTime(PROTOCOL_MS + OWN_MS, OWN_MS)] * QUIET
    found = HeldTimes(allowed(0.02), quiet)
    while wanted := found.wanted:
        slow = PROCESSES_MS + DRIFT_MS if len(found) < 2 * FEWEST else 0.0
        found.add(min(wanted), PROTOCOL_MS + 0.02 + slow, StandInTime(PROTOCOL_MS + OWN_MS + slow, OWN_MS))
    assert 2 * FEWEST < len(found) < MOST
    found.after = quiet
    assert found.judged is None
