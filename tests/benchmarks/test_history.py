from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

from history import DAYS, Machines, Suite, both, false_alarms, found, in_turn, replaced, simulated


@pytest.mark.parametrize("machines", [both, in_turn, replaced])
def test_months_without_a_change_are_silent(machines: Machines) -> None:
    assert false_alarms(Suite(), machines, 10) == (0, 0)


def test_machines_that_differ_in_each_problem_are_silent() -> None:
    assert false_alarms(Suite(apart=0.005), replaced, 10) == (0, 0)


def test_a_change_of_three_percent_is_found_within_days_at_its_place() -> None:
    assert found(Suite(), both, 0.03, 5)[1:] == [1.0, 1.0, 1.0, 1.0]


def test_a_false_alarm_would_be_counted() -> None:
    starts = simulated(random.Random(0), Suite(), both, change=0.1, since=10)
    assert [len(each) for each in starts] == [1] + [0] * 32 and 9 <= starts[0][0] <= 11 < DAYS
