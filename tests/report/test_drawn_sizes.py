"""The answer for drawn sizes: its table, the feedback, and the commands that repeat a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inlinebench.report.drawn_sizes import commands, render
from inlinebench.report.terminal.feedback import feedback
from inlinebench.results.result import Fuzzed, Result, Verdict
from inlinebench.results.result_json import from_json, to_json

from .samples import result

FAILED = Fuzzed(32, 32, 5, 6, ("ROWS=1", "COLUMNS=33"), ("ROWS=77", "COLUMNS=4129"), True)


def failed(**facts: Any) -> Result:
    given: dict[str, Any] = {"shape": "fuzz", "fuzz": FAILED, "seed": 7, "device": "cpu",
                             "reason": "at ROWS=1, COLUMNS=33: call 2 differs", **facts}
    return result("rms_norm/mine", Verdict.CRASHED, **given)


def test_the_table_has_what_passed_and_the_smallest_size_that_fails() -> None:
    passed = result("softmax/mine", fuzz=Fuzzed(32, 32, 0, 32))
    rows = [line.split() for line in render([failed(), passed]).splitlines()]
    assert rows[2] == ["rms_norm", "mine", "6", "of", "32", "until", "it", "failed", "5", "ROWS=1,", "COLUMNS=33"]
    assert rows[3] == ["softmax", "mine", "32", "of", "32", "0", "—"]
    assert render([result()]) == ""


@pytest.mark.parametrize(("facts", "expected"), [
    ({}, ["repeat with: inlinebench run --fuzz 32 --device cpu --seed 7 rms_norm/mine",
          "this size alone: inlinebench run --set ROWS=1 --set COLUMNS=33 --device cpu --seed 7 rms_norm/mine"]),
    ({"shape": "fuzz,M=2+backward", "backward": True},
     ["repeat with: inlinebench run --fuzz 32 --set M=2 --backward --device cpu --seed 7 rms_norm/mine",
      "this size alone: inlinebench run --set M=2 --set ROWS=1 --set COLUMNS=33 --backward --device cpu --seed 7 "
      "rms_norm/mine"]),
    ({"fuzz": Fuzzed(8, 8, 0, 1, ("shape=(2, 3)", "N=4"), ("shape=(2, 3)", "N=4"), True)},
     ["repeat with: inlinebench run --fuzz 8 --device cpu --seed 7 rms_norm/mine",
      "this size alone: inlinebench run --set 'shape=(2, 3)' --set N=4 --device cpu --seed 7 rms_norm/mine"]),
    ({"fuzz": replace(FAILED, alone=False)},
     ["repeat with: inlinebench run --fuzz 32 --device cpu --seed 7 rms_norm/mine"]),
    ({"fuzz": Fuzzed(8, 8, 0, 1, ("224=2",), ("224=2",), True)},
     ["repeat with: inlinebench run --fuzz 8 --device cpu --seed 7 rms_norm/mine"]),
])
def test_a_failure_has_the_commands_that_repeat_it(facts: dict[str, Any], expected: list[str]) -> None:
    assert list(commands(failed(**facts))) == expected


def test_feedback_names_the_smallest_size_and_where_it_was_found_from() -> None:
    lines = feedback(failed()).splitlines()
    assert lines[1] == "drawn sizes that passed: 6 of 32 until it failed; refused by the reference: 5"
    assert lines[2] == "the smallest size that fails: ROWS=1, COLUMNS=33, found from ROWS=77, COLUMNS=4129"


def test_it_survives_json() -> None:
    assert from_json(to_json(failed())) == failed()


@pytest.mark.parametrize("facts", [(32, 33, 0, 1), (32, 32, 0, 33), (32, 32, -1, 1), (32, 32, 0, 1, ("N=1",))])
def test_counts_that_contradict_each_other_are_refused(facts: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"can't have passed|found from"):
        Fuzzed(*facts)
