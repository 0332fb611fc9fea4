"""Calls whose incoming gradients come after `forward`, so that a `forward` that reads them computes with others."""

from __future__ import annotations

from random import Random

import pytest

from inlinebench.evaluation.calls import CERTAIN_LATE, LATE_SHARE, LATE_SHARE_OF_TIMED, LateCalls

CERTAIN = 25
"""The calls of an evaluation with the fewest."""


def late(*, timed: bool, seed: int, calls: int = CERTAIN) -> list[int]:
    chosen = LateCalls(CERTAIN, timed=timed, secret=Random(seed))
    return [number for number in range(1, calls + 1) if chosen.contains(number)]


@pytest.mark.parametrize("timed", [True, False])
def test_every_evaluation_has_late_calls_at_secret_places_and_others(timed: bool) -> None:
    """The others can show work on a stream that is never joined."""
    found = [late(timed=timed, seed=seed) for seed in range(2000)]
    assert all(CERTAIN_LATE <= len(each) < CERTAIN for each in found)
    assert {each[0] for each in found} >= set(range(1, 10))


@pytest.mark.parametrize(("timed", "share"), [(True, LATE_SHARE_OF_TIMED), (False, LATE_SHARE)])
def test_calls_are_late_after_the_certain_ones_too(timed: bool, share: float) -> None:
    found = late(timed=timed, seed=7, calls=4000)
    assert len(found) / 4000 == pytest.approx(share, abs=0.03)


def test_a_single_call_is_late() -> None:
    chosen = LateCalls(1, timed=True, secret=Random(7))
    assert chosen.contains(1)
