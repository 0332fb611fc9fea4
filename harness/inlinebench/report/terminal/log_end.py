"""The end of a log of a solution and its compilers: the last traceback, or the last lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inlinebench import foreign

TRACEBACK = "Traceback (most recent call last):"
BETWEEN = ("/inlinebench/candidate/", "/inlinebench/process/", "/inlinebench/timing/", "/inlinebench/compile/",
           "<frozen importlib", "/torch/nn/modules/module.py")
"""Paths of stack frames between the harness and the solution, which are left out of tracebacks."""


def end_of_log(log: str, most: int, limit: int, *, traceback: bool) -> list[str]:
    """Returns the last `most` lines that are not blank, each cut after `limit` characters.

    With `traceback` these are from the last traceback on, without the harness's frames and without the markers below
    source lines.
    """
    lines = log.split("\n")
    starts = [number for number, line in enumerate(lines) if line.strip() == TRACEBACK]
    if traceback and starts:
        lines = list(_without_frames_between(lines[starts[-1] :]))
    return [line for line in foreign.lines("\n".join(lines), limit) if line][-most:]


def _without_frames_between(lines: Sequence[str]) -> Iterator[str]:
    between = False
    for line in lines:
        if line.startswith("  File "):
            between = any(path in line for path in BETWEEN)
        elif not line.startswith("    "):
            between = False
        if not between and set(line) - set(" ^~"):
            yield line
