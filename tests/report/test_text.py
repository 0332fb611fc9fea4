from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.text import brief_reason, grid, significant


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0005, "0.000500"),
        (0.0683, "0.0683"),
        (2.814, "2.81"),
        (9.996, "10.0"),
        (99.96, "100"),
        (12345.6, "12346"),
        (0.0, "0"),
        (-2.814, "-2.81"),
        (1e-9, "1.00e-09"),
        (3e8, "3.00e+08"),
        (math.inf, "inf"),
    ],
)
def test_significant_shows_three_digits_and_whole_integers(value: float, shown: str) -> None:
    assert significant(value) == shown


@given(st.floats(1e-6, 1e6))
def test_significant_is_within_half_a_percent(value: float) -> None:
    assert float(significant(value)) == pytest.approx(value, rel=0.005)


def test_a_reason_is_shown_with_the_source_lines_that_it_quotes() -> None:
    assert brief_reason("\n a  b\r\n  2 | \tc\n    |  ^\nd\n  e") == "a  b\n  |   2 |   c\n  |     |  ^"
    assert brief_reason("a" * 600) == "a" * 499 + "…"
    assert brief_reason(" \n") == ""


def test_a_name_that_looks_like_a_number_is_unchanged_in_a_grid() -> None:
    assert grid(["name"], [["1e5"]], ["left"]).splitlines()[-1] == "1e5"
