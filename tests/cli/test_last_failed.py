"""`--fail-fast` and `--last-failed`, as a user meets them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from .test_bad_inputs import FAST, SOLUTION, here, inlinebench, results, write

pytestmark = pytest.mark.slow

__all__ = ["here"]
WRONG = SOLUTION.replace("x * 2", "x * 3")


def run(here: Path, cache: Path, *arguments: str) -> list[str]:
    """Runs everything and returns the names of the solutions that were evaluated, sorted: rows come as they end."""
    out = here / "out.jsonl"
    out.unlink(missing_ok=True)
    inlinebench(here, "check", *FAST, "--cache", str(cache), "--out", str(out), *arguments)
    return sorted(results(out))


def test_only_what_failed_is_evaluated_again_until_it_passes(here: Path, cache: Path) -> None:
    write(here / "solutions/twice/b.py", WRONG)
    assert run(here, cache) == ["a", "b"]
    assert run(here, cache, "--lf") == ["b"]
    assert run(here, cache, "twice/a") == ["a"]  # says nothing about the other one
    assert run(here, cache, "--last-failed") == ["b"]
    write(here / "solutions/twice/b.py", SOLUTION)
    assert run(here, cache, "--lf") == ["b"]
    assert run(here, cache, "--lf") == ["a", "b"]


@pytest.mark.parametrize(("option", "evaluated"), [("-x", ["a"]), ("--fail-fast", ["a"]), ("--tf32", ["a", "b"])])
def test_fail_fast_stops_after_the_first_failure(here: Path, cache: Path, option: str, evaluated: list[str]) -> None:
    write(here / "solutions/twice/a.py", "x = 1")
    write(here / "solutions/twice/b.py", WRONG)
    assert run(here, cache, option, "--jobs", "1") == evaluated


def test_the_junit_file_has_the_time_of_each_evaluation(here: Path, cache: Path) -> None:
    inlinebench(here, "check", "twice/a", *FAST, "--cache", str(cache), "--junit", "o.xml")
    (case,) = ElementTree.parse(here / "o.xml").iter("testcase")
    assert float(case.attrib["time"]) > 0
