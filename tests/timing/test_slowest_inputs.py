"""Which kind of inputs decides a speedup."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from inlinebench.timing.statistics import ENOUGH, FEWEST, calls_needed, slowest

noise = st.floats(0.0, 0.02)


def around(center: float, share: float, count: int, seed: int) -> list[float]:
    source = random.Random(seed)
    return [center * (1 + source.uniform(-share, share)) for _ in range(count)]


@given(noise, st.integers(0, 2**32))
def test_equal_speedups_have_no_slowest_inputs(share: float, seed: int) -> None:
    ratios = {kind: around(2.0, share, 6, seed + index) for index, kind in enumerate("abcd")}
    assert slowest(ratios) is None


@given(noise, st.integers(0, 2**32), st.sampled_from([0.5, 0.8, 0.9]), st.integers(FEWEST, FEWEST + 16))
def test_inputs_on_which_a_solution_is_clearly_slower_are_found(
    share: float, seed: int, factor: float, count: int
) -> None:
    ratios = {kind: around(2.0, share, 6, seed + index) for index, kind in enumerate("abc")}
    assert slowest({**ratios, "d": around(2.0 * factor, share, count, seed + 9)}) == "d"


def test_several_slow_kinds_do_not_hide_each_other() -> None:
    assert slowest({"a": [2.0] * 6, "b": [1.0] * 4, "c": [1.1] * 4, "d": [1.2] * 4}) == "b"


def test_a_kind_with_too_few_calls_is_not_compared() -> None:
    assert slowest({"a": [2.0] * 10, "b": [1.0] * (FEWEST - 1)}) is None


def test_one_kind_alone_is_not_compared() -> None:
    assert slowest({"a": [2.0, 1.0, 3.0]}) is None
    assert slowest({}) is None


def test_each_kind_of_inputs_needs_a_few_calls() -> None:
    assert calls_needed({"a": [2.0] * 10, "b": [2.0], "c": []}) == dict.fromkeys("abc", FEWEST)
    assert calls_needed({"a": [2.0] * 3, "b": [1.95] * 3}) == dict.fromkeys("ab", FEWEST)


def test_kinds_of_inputs_that_seem_to_differ_need_more_calls() -> None:
    ratios = {"a": [2.0] * 3, "b": [1.98] * 3, "c": [1.0] * 3, "d": [0.5] * (FEWEST - 1)}
    assert calls_needed(ratios) == {"a": ENOUGH, "b": FEWEST, "c": ENOUGH, "d": FEWEST}


def test_a_disturbed_call_hides_a_difference_only_among_few_calls() -> None:
    for few, many in [([2.0, 2.0, 0.9], [1.0] * 3), ([2.0] * 3, [1.0, 1.0, 3.0])]:
        ratios = {"a": few, "b": many}
        assert slowest(ratios) is None and calls_needed(ratios)["b"] == ENOUGH
        assert slowest({"a": [*few, *[2.0] * (ENOUGH - 3)], "b": [*many, *[1.0] * (ENOUGH - 3)]}) == "b"
