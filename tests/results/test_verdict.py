"""Tests of what verdicts mean. Each is declared in one place, so each must say everything there."""

from __future__ import annotations

import copy
import pickle

import pytest

from inlinebench.results.result import Verdict

FACTS = {"meaning", "advice", "is_failure", "is_about_solution", "depends_on_shape", "repeats",
         "may_lack_shapes"}


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_meaning_a_colour_and_a_symbol(verdict: Verdict) -> None:
    assert {name for name in vars(verdict) if not name.startswith("_")} == FACTS
    assert verdict.meaning and verdict.meaning[-1] != "." and "|" not in verdict.meaning
    assert verdict.colour in ("green", "yellow", "red") and verdict.symbol in ("✅", "⏭️", "⚠️", "❌")


def test_what_says_nothing_about_the_solution_is_yellow_and_says_so() -> None:
    others = [verdict for verdict in Verdict if not verdict.is_about_solution]
    assert others == [Verdict.SKIPPED, Verdict.PROBLEM_ERROR, Verdict.INTERNAL_ERROR]
    assert all(each.colour == "yellow" and "says nothing" in each.advice for each in others)


def test_all_but_passed_and_skipped_are_failures() -> None:
    assert [verdict for verdict in Verdict if not verdict.is_failure] == [Verdict.PASSED, Verdict.SKIPPED]


def test_only_one_verdict_is_green_and_failures_of_solutions_are_red() -> None:
    assert [verdict for verdict in Verdict if verdict.colour == "green"] == [Verdict.PASSED]
    for verdict in Verdict:
        assert (verdict.colour == "red") == (verdict.is_failure and verdict.is_about_solution)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_is_its_text_and_survives_copies(verdict: Verdict) -> None:
    assert verdict == verdict.value == str(verdict) == f"{verdict}" and verdict is Verdict(verdict.value)
    assert copy.deepcopy(verdict) is verdict is pickle.loads(pickle.dumps(verdict))
