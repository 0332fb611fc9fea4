"""Calls use many sets of buffers, and reuse many of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from inlinebench.evaluation.buffer_rotation import BufferRotation


def chosen(sets: int, calls: int, seed: int = 0) -> list[int]:
    rotation = BufferRotation(sets, random.Random(seed))
    return [rotation.next() for _ in range(calls)]


@given(st.integers(1, 64), st.integers(1, 300), st.integers(0, 100))
def test_every_other_call_reuses_a_set(sets: int, calls: int, seed: int) -> None:
    found = chosen(sets, calls, seed)
    assert all(index in found[:number] for number, index in enumerate(found) if number % 2)


@given(st.integers(1, 64), st.integers(1, 300))
def test_the_other_calls_use_all_sets_in_turn(sets: int, calls: int) -> None:
    assert chosen(sets, calls)[::2] == [number % sets for number in range((calls + 1) // 2)]


def test_the_reused_sets_depend_on_the_seed() -> None:
    assert len({tuple(chosen(64, 25, seed)) for seed in range(20)}) == 20


def test_a_single_set_is_always_used() -> None:
    assert set(chosen(1, 25)) == {0}
