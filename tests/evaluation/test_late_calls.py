"""Calls whose incoming gradients come after `forward`, so that a `forward` that reads them computes with others."""

from __future__ import annotations

from random import Random

import pytest

from inlinebench.evaluation.calls import LATE_SHARE, UNBLOCKED_SHARE, comes_late


def share(*, blocked: bool, timed: bool) -> float:
    secret = Random(7)
    return sum(comes_late(blocked, timed, secret) for _ in range(4000)) / 4000


@pytest.mark.parametrize("blocked", [True, False])
def test_all_calls_are_late_where_no_times_are_compared(blocked: bool) -> None:
    assert share(blocked=blocked, timed=False) == 1


def test_no_call_behind_the_blocking_kernel_is_late() -> None:
    assert share(blocked=True, timed=True) == 0


def test_some_of_the_other_calls_are_late_and_some_are_not() -> None:
    """Those that are not can show work on a stream that is never joined."""
    assert share(blocked=False, timed=True) == pytest.approx(LATE_SHARE, abs=0.05)
    assert 0.2 <= LATE_SHARE <= 0.8
    assert 1 - (1 - LATE_SHARE * UNBLOCKED_SHARE) ** 25 > 0.5  # most evaluations with the fewest calls have a late one
