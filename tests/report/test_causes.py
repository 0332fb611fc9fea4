"""How the page groups results."""

from __future__ import annotations

import pytest

from inlinebench.report.causes import cause, groups
from inlinebench.report.rows import arrange
from inlinebench.results.result import Verdict

from .samples import result, timing

WRONG = "call {} (inputs as drawn): {} of 4096 elements differ (40.1 %); first at [0, {}]: expected 1.5, got {}"
SOME = "\N{HORIZONTAL ELLIPSIS}"
REASONS = {
    WRONG.format(2, 1643, 7, -0.5): "elements differ",
    f"at the derived shape dim=256: {WRONG.format(1, 4, 0, 'nan')}": "elements differ",
    "call 1 (input 0 with random signs): all 4096 elements differ; first at [0]: expected 1, got 2": "elements differ",
    "output 1: its one element differs; expected 1, got 2": "elements differ",
    'cuda_sources:39:7: error: identifier "x" is undefined\n   39 | x': f"error: identifier {SOME} is undefined",
    "its times don't add up: 1.5 ms by the judge's clock": f"its times don't add up: {SOME} ms by the judge's clock",
    "only 0.13% of its GPU time is in its own kernels": f"only {SOME}% of its GPU time is in its own kernels",
}


@pytest.mark.parametrize(("reason", "expected"), REASONS.items())
def test_a_cause_has_no_places_names_or_numbers(reason: str, expected: str) -> None:
    assert cause(result("p/s", Verdict.WRONG, reason=reason)) == expected


def test_what_passed_comes_first_the_fastest_first_then_the_most_frequent_cause() -> None:
    made = [
        result("a/s", Verdict.CRASHED, reason="a.py:3: KeyError: 7"),
        result("b/s", Verdict.WRONG, reason=WRONG.format(1, 2, 3, 4)),
        result("c/s", Verdict.PASSED, timing=timing(1.5)),
        result("d/s", Verdict.WRONG, reason=WRONG.format(5, 6, 7, 8)),
        result("e/s", Verdict.PASSED, timing=timing(3.0)),
    ]
    found = groups(arrange(made).rows)
    assert [[row.problem for row in group.rows] for group in found] == [["e", "c"], ["b", "d"], ["a"]]
    assert [group.heading for group in found] == [
        "2 passed, the fastest first", "2 wrong: elements differ", f"1 crashed: KeyError: {SOME}"]


def test_a_single_group_has_no_heading() -> None:
    rows = arrange([result("a/s", Verdict.PASSED, timing=timing(2.0))]).rows
    assert [group.heading for group in groups(rows)] == [""]
    assert groups(()) == []
