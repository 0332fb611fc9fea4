"""The end of what a solution and its compilers printed: the last traceback, or the last lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inlinebench.report.text import one_line

TRACEBACK = "Traceback (most recent call last):"
BETWEEN = ("/inlinebench/candidate/", "/inlinebench/process/", "/inlinebench/timing/", "/inlinebench/compile/",
           "<frozen importlib", "/torch/nn/modules/module.py")
"""Where the frames of a traceback lie that are between the harness and the solution."""
DEEPEST = 8


def end_of_log(log: str, most: int, limit: int, *, traceback: bool) -> list[str]:
    """At most so many lines of at most so many characters, none blank; of the last traceback, if one is wanted.

    Frames of the harness are left out, and so are the marks below source lines.
    """
    lines = log.splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip() == TRACEBACK]
    if traceback and starts:
        lines = list(_without_frames_between(lines[starts[-1] :]))
    return [_indented(line, limit) for line in lines if one_line(line)][-most:]


def _without_frames_between(lines: Sequence[str]) -> Iterator[str]:
    between = False
    for line in lines:
        if line.startswith("  File "):
            between = any(place in line for place in BETWEEN)
        elif not line.startswith("    "):
            between = False
        if not between and set(line) - set(" ^~"):
            yield line


def _indented(line: str, limit: int) -> str:
    """A line fit for a terminal, with the blanks that it begins with."""
    blanks = min(DEEPEST, len(line) - len(line.lstrip(" ")))
    return " " * blanks + one_line(line, limit - blanks)
