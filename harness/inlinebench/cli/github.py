"""In GitHub Actions: annotations at the lines of solutions that did not pass, and a summary of the job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from inlinebench.cli.exits import say
from inlinebench.foreign import LONGEST, message, one_line
from inlinebench.report.formats import markdown
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Result

MOST = 50
"""Annotations of a run. GitHub shows even fewer."""
_AT = re.compile(r"\((?P<file>[^()]+\.py), line (?P<line>\d+)\)")
"""Where a reason says that an exception was raised."""
_QUOTED = re.compile(r" *\d+ \| (?P<text>.*)")
"""A line that a reason quotes from the sources of a build."""


def report(results: Sequence[Result], files: Mapping[str, Path], environment: Mapping[str, str] = os.environ) -> None:
    """Prints annotations on stderr and appends to the summary of the job. Does nothing outside GitHub Actions.

    `files` has the files of solutions by `problem/solution`. A summary that cannot be written is a line on stderr.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    root = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd())
    failed = [each for each in results if each.verdict.is_failure]
    for result in failed[:MOST]:
        print(annotation(result, files.get(f"{result.problem}/{result.solution}"), root), file=sys.stderr)
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(markdown.table(results))
        except OSError as error:
            say(f"GITHUB_STEP_SUMMARY: {summary} can't be written ({error.strerror})")


def annotation(result: Result, path: Path | None, root: Path) -> str:
    """Returns the workflow command for a result, at its file and line if they are known."""
    place = {}
    if path is not None:
        own = Path(os.path.realpath(path))
        place = {"file": os.path.relpath(own, root) if own.is_relative_to(root.resolve()) else str(own)}
        if line := line_of(result.reason, own):
            place["line"] = str(line)
    place["title"] = f"{result.problem}/{result.solution} ({result.shape}): {result.verdict}"
    facts = ",".join(f"{name}={_escaped(one_line(text, None), ':,')}" for name, text in place.items())
    kind = "warning" if result.failed_derived or result.solution == LIBRARY else "error"
    return f"::{kind} {facts}::{_escaped(message(result.reason, LONGEST), '')}"


def line_of(reason: str, path: Path) -> int | None:
    """Returns the line of the file that a reason is about: it names the line, or quotes it."""
    found = _AT.search(reason)
    if found and found["file"] == path.name:
        return int(found["line"])
    quotes = (match["text"].strip() for match in map(_QUOTED.match, reason.splitlines()) if match)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return None
    return next((lines.index(text) + 1 for text in quotes if lines.count(text) == 1), None)


def _escaped(text: str, more: Iterable[str]) -> str:
    for letter in ("%", "\n", *more):
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
