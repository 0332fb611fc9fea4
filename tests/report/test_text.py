from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.text import grid, laid_out, one_line, quoted, significant


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


def test_laid_out_text_keeps_whitespace_but_no_control_characters() -> None:
    assert laid_out("a\n\n  \t b  c\x1b[2J\x07 \n") == ["a", "         b  c\N{REPLACEMENT CHARACTER}"]
    assert quoted("\n a  b\n  2 | c\n    | ^\nd\n  e") == ["a b", "  2 | c", "    | ^"]
    assert quoted(" \n") == []


@given(st.text())
def test_the_first_quoted_line_equals_one_line(reason: str) -> None:
    lines = quoted(reason)
    assert (lines[0] if lines else "") == one_line(reason)
    assert all(line.isprintable() and line.startswith(" ") for line in lines[1:])


def test_one_line_is_the_first_line_that_is_not_blank() -> None:
    assert one_line("\n \n  two \t words\nmore") == "two words"


def test_escape_sequences_and_control_characters_never_reach_the_terminal() -> None:
    assert one_line("\x1b[31merror\x1b[0m: \x1b]0;title\x07no\x08\u202e such") == "error: no\ufffd\ufffd such"


def test_a_long_line_is_cut() -> None:
    assert one_line("x" * 600) == "x" * 499 + "…"


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"])))
def test_one_line_is_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()


def test_a_name_that_looks_like_a_number_is_unchanged_in_a_grid() -> None:
    assert grid(["name"], [["1e5"]], ["left"]).splitlines()[-1] == "1e5"
