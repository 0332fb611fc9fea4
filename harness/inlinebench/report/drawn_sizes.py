"""Answers for drawn sizes: how many passed, or the smallest one that fails, with the commands that repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.report import replay
from inlinebench.report.text import ABSENT, grid
from inlinebench.results.result import Fuzzed, Result

HEADERS = ("problem", "solution", "sizes passed", "refused", "fails at")
LEGEND = "refused: further sizes that were left out, because the reference fails there, or returns NaN or nothing"


def render(results: Iterable[Result]) -> str:
    """Returns a table with a row for each solution that was evaluated at drawn sizes, a legend, and for each that
    failed the commands that repeat it; "" without such solutions."""
    found = sorted(((each, each.fuzz) for each in results if each.fuzz is not None),
                   key=lambda pair: (natural(pair[0].problem), natural(pair[0].solution), pair[0].shape))
    if not found:
        return ""
    table = grid(HEADERS, [_cells(*pair) for pair in found], ["left"] * len(HEADERS))
    repeats = [f"{one_line(result.problem)}/{one_line(result.solution)}: {line}"
               for result, _ in found for line in commands(result)]
    return "\n".join([table, LEGEND, *repeats])


def _cells(result: Result, fuzz: Fuzzed) -> list[str]:
    return [one_line(result.problem), one_line(result.solution), share(fuzz), str(fuzz.refused),
            ABSENT if fuzz.failed_at is None else one_line(", ".join(fuzz.failed_at))]


def share(fuzz: Fuzzed) -> str:
    """Says how many sizes passed, and how many were drawn."""
    first = "" if fuzz.failed_at is None else " until it failed"
    return f"{fuzz.passed} of {fuzz.sizes}{first}"


def commands(result: Result) -> Iterator[str]:
    """Yields the command that repeats a failure at drawn sizes, and the one that evaluates the smallest of them alone.

    There is none for a single size that `--set` cannot name, such as a number in `get_inputs`.
    """
    if result.fuzz is None or result.fuzz.failed_at is None:
        return
    yield f"repeat with: {replay.command(result)}"
    if alone := replay.at_smallest(result):
        yield f"this size alone: {alone}"
