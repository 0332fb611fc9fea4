"""Calls see many sets of buffers, and many of them a second time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from inlinebench.evaluation.buffer_rotation import BufferRotation


def places(sets: int, calls: int, seed: int = 0) -> list[int]:
    visits = BufferRotation(sets, random.Random(seed))
    return [visits.next() for _ in range(calls)]


@given(st.integers(1, 64), st.integers(1, 300), st.integers(0, 100))
def test_every_other_call_comes_back(sets: int, calls: int, seed: int) -> None:
    found = places(sets, calls, seed)
    assert all(place in found[:number] for number, place in enumerate(found) if number % 2)


@given(st.integers(1, 64), st.integers(1, 300))
def test_the_others_go_round(sets: int, calls: int) -> None:
    assert places(sets, calls)[::2] == [number % sets for number in range((calls + 1) // 2)]


def test_which_set_comes_again_is_not_known_beforehand() -> None:
    assert len({tuple(places(64, 25, seed)) for seed in range(20)}) == 20


def test_with_one_set_it_is_that() -> None:
    assert set(places(1, 25)) == {0}
