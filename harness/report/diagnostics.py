"""The errors in a build's log: what, in which line of which source, and the text of that line where the log has it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LOCATED = re.compile(  # `file:line:column: error: ...` as GCC and Clang write, `file(line): error: ...` as nvcc does
    r"^(?P<file>[^\s:()][^:()]*)(?:\((?P<nvcc>\d+)\)|:(?P<gcc>\d+(?::\d+)?)): (?:[a-z]+ )?error\b[^:]*: *(?P<text>.*)$"
)
_ANOTHER = re.compile(r"^(?:In file included from |[^\s:()][^:()]*(?:\(\d+\)|:\d+(?::\d+)?): )")
_UNLOCATED = re.compile(
    r"undefined reference|cannot find -l|multiple definition of|\bptxas\b.*\b(?:error|fatal)\b|^nvcc (?:error|fatal)\b"
    r"|^[^\s:]+: (?:fatal )?error: "
)
_ECHOES = ("Ptx assembly aborted", "ld returned", "ninja: ")
"""Lines that only say that there was an error."""
_TRACEBACK = "Traceback (most recent call last):"
_GCC_SOURCE = re.compile(r"^ *\d+ \| (.*)$")
_CARET = re.compile(r"^\s*\^[\s~^]*$")
LOOKED_AT = 6
"""Lines behind an error that may belong to it."""


@dataclass(frozen=True)
class Diagnostic:
    """One error. `place` is `file:line` or `file:line:column`, empty for linkers and assemblers; `details` say more."""

    text: str
    place: str = ""
    source: str = ""
    details: tuple[str, ...] = ()


def diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Every error of a log, each once, in order; what follows a Python traceback is not looked at."""
    lines = log.partition(_TRACEBACK)[0].splitlines()
    found: dict[tuple[str, str], Diagnostic] = {}
    for number, line in enumerate(lines):
        match = _LOCATED.match(line)
        if match:
            place = f"{match['file']}:{match['nvcc'] or match['gcc']}"
            source, details = _behind(lines[number + 1 : number + 1 + LOOKED_AT])
            one = Diagnostic(match["text"].strip(), place, source, (*_before(lines, number), *details))
        elif _UNLOCATED.search(line) and not any(echo in line for echo in _ECHOES):
            one = Diagnostic(line.strip())
        else:
            continue
        found.setdefault((one.place, one.text), one)
    return tuple(found.values())


def _behind(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """The source line, and what the compiler adds beside it."""
    source, details = "", list[str]()
    for number, line in enumerate(lines):
        if not line.strip() or _ANOTHER.match(line):
            break
        gcc = _GCC_SOURCE.match(line)
        if gcc:
            source = source or gcc[1].strip()
        elif _CARET.match(line) and number and not source:
            source = lines[number - 1].strip()
            details = details[:-1]
        elif line.startswith(" ") and not line.lstrip().startswith("|"):
            details.append(line.strip())
    return source, tuple(details[:2])


def _before(lines: list[str], number: int) -> tuple[str, ...]:
    """Where a template was asked for, which GCC says first."""
    before = lines[number - 1].strip() if number else ""
    place = before.removesuffix("required from here").strip().removesuffix(":")
    return (f"required from {place}",) if before.endswith("required from here") else ()
