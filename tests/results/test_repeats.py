"""The record of repeated calls refuses what can't be."""

from __future__ import annotations

from typing import Any

import pytest

from inlinebench.results.repeats import Repeatability, Varying
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.results.result_json import from_json, to_json

VARYING = (Varying("output", 3, 8, 2),)
EQUAL = Repeatability(40, 40, 2, True, (), True, False)
VARIES = Repeatability(40, 21, 2, False, VARYING)


@pytest.mark.parametrize(("elements", "count"), [(0, 8), (9, 8), (-1, 8), (1, 0)])
def test_as_many_elements_vary_as_there_are_at_most_and_one_at_least(elements: int, count: int) -> None:
    with pytest.raises(ValueError, match="can't vary"):
        Varying("output", elements, count)


@pytest.mark.parametrize("facts", [
    {"equal": 39}, {"equal": 40, "varying": VARYING}, {"equal": 0, "varying": VARYING}, {"equal": 41}, {"processes": 0},
    {"equal": 39, "varying": VARYING, "rows_equal": True}, {"equal": 39, "varying": VARYING, "first_row_equal": False},
], ids=repr)
def test_contradictions_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Repeatability(**({"calls": 40, "equal": 40, "processes": 2, "moved": True} | facts))


@pytest.mark.parametrize("repeats", [EQUAL, VARIES], ids=["equal", "varies"])
def test_a_result_with_it_is_read_back_from_json(repeats: Repeatability) -> None:
    result = Result("p", "s", "full", "cpu", Verdict.PASSED, check=Check(25, 1e-4, "float64", "by name"),
                    repeats=repeats)
    assert from_json(to_json(result)) == result


def test_only_a_passed_result_has_it() -> None:
    with pytest.raises(ValueError, match="wrong can't have repeated calls"):
        Result("p", "s", "full", "cpu", Verdict.WRONG, "the values differ", repeats=EQUAL)
