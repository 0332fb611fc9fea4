"""Finds errors in the output of compilers, assemblers, linkers and ninja."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 1000
"""Messages are cut at this number of characters, because names of templates can be arbitrarily long."""
MOST_DETAILS = 2
MOST_ERRORS, MOST_ORIGINS = 100, 32
LOOKED_AT = 32
"""Lines below an error of nvcc that are searched for its details."""
_NUMBER = r"\d{1,9}"
_SEVERITY = r"(?:(?:[a-z-]+ ){0,2}error\b(?: #[\w-]+)?|Error|Fatal error|sorry, unimplemented)\s*: *"
_LINKER = r"\S*\bld(?:\.\w+)?: "

_LOCATED = re.compile(  # GCC, Clang and assemblers write `file:line:column: error: `, nvcc's compilers `file(line): `
    rf"(?P<label>[^\s:][^:]*?)(?:\((?P<nvcc>{_NUMBER})\)|:(?P<line>{_NUMBER})(?::(?P<column>{_NUMBER}))?): "
    rf"{_SEVERITY}(?P<text>.*)"
)
_PTXAS = re.compile(rf"ptxas \S.*, line (?P<line>{_NUMBER}); (?P<severity>error|fatal)\s*: *(?P<text>.*)")
_UNLOCATED = re.compile(
    r"[\w+./-]+ (?:error|fatal)\s*: "  # nvcc and its steps
    r"|[^\s:]+: (?:(?:[a-z-]+ ){0,2}error|fatal): |(?:[^\s:]+: )?Fatal error: |(?:Command-line|Catastrophic) error: "
    rf"|{_LINKER}(?!.*: in function |use the --help|skipping incompatible)"
    r"|\S.*(?:undefined reference to|multiple definition of) "
    r"|LLVM ERROR: |\S+: (?:virtual memory exhausted|out of memory)"
)
_NO_ERROR = re.compile(r"[^\"'`\u2018]*?\b(?:warning|note|remark|info)\b(?: #[\w-]+)?\s*:", re.IGNORECASE)
_ECHO = re.compile(
    r"ninja: build stopped|FAILED: |collect2: error: ld returned|.*Ptx assembly aborted|fatbinary fatal"
    r"|compilation terminated|\d+ (?:catastrophic )?errors? detected|cc1(?:plus)?: (?:all|some) warnings being treated"
    r"|.*final link failed: (?!No space)|Assembler messages:|.*returned \d+ exit status|Remark: |\s",
    re.IGNORECASE,
)
"""Lines that say that an error occurred, or where, but not which."""

_FAILED = re.compile(rf"FAILED: (?:\[code=(?P<code>{_NUMBER})\] )?(?P<target>.*)")
_SCOPE = re.compile(r"(?P<label>[^\s:][^:]*): (?:In|At) .*:$")
_INCLUDED = re.compile(rf"(?:In file included|\s+) ?from (?P<label>[^:]+):(?P<line>{_NUMBER})(?::{_NUMBER})?[:,]?$")
_REQUIRED = re.compile(
    rf"(?P<label>[^\s:][^:]*):(?P<line>{_NUMBER}):(?P<column>{_NUMBER}):\s+(?:note:\s+)?"
    r"(?:recursively )?required (?:from|by)"
)
_WARNED = re.compile(rf"(?P<label>[^\s:][^:]*):{_NUMBER}:")
_INSTANTIATED = re.compile(rf"\s.*\bat line (?P<line>{_NUMBER})(?: of (?P<label>.+))?$")
_CARET = re.compile(r"\s*\^\s*$")
_ADDRESS = re.compile(rf":?\(\.[^()]*\)|(?<=\S):/[^:]*:{_NUMBER}(?=: first defined here)")
"""Where in an object file a linker's message points to: a section, or with debug information the source's line."""


@dataclass(frozen=True)
class LogLocation:
    """A line of a file as the compiler names it. `column` is 0 if unknown."""

    label: str
    line: int
    column: int = 0


@dataclass(frozen=True)
class Error:
    """One error."""

    text: str
    """The message."""
    location: LogLocation | None = None
    """Where the error is, if the message says so."""
    rest: str = ""
    """The source line from the location on, as nvcc quotes it: after preprocessing."""
    details: tuple[str, ...] = ()
    """Further lines of the message."""
    origins: tuple[LogLocation, ...] = ()
    """The lines that include the file or instantiate the template with the error, the outermost last."""


def errors(log: str) -> tuple[Error, ...]:
    """Returns the errors of a log in order, without duplicates."""
    lines = log.splitlines()
    found: dict[tuple[str, LogLocation | None], Error] = {}
    included: dict[str, tuple[LogLocation, ...]] = {}  # how each file was included; compilers print this only once
    chain, required = list[LogLocation](), list[LogLocation]()
    for number, line in enumerate(lines):
        if number and lines[number - 1].startswith("FAILED: "):
            continue  # the command that failed
        if match := _INCLUDED.match(line):
            chain = [*([] if line[0] == "I" else chain[-MOST_ORIGINS:]), _location(match)]
        elif match := _REQUIRED.match(line):
            required = [*required[-MOST_ORIGINS:], _location(match, int(match["column"]))]
        elif match := _SCOPE.match(line):
            chain = _note(included, match["label"], chain)
            required = []
        elif match := _LOCATED.match(line):
            chain = _note(included, match["label"], chain)
            one = _located(match, lines[number + 1 : number + 1 + LOOKED_AT] if match["nvcc"] else ())
            before = tuple(required) or included.get(match["label"], ())
            one = Error(one.text, one.location, one.rest, one.details, one.origins or before)
            found.setdefault((one.text, one.location and LogLocation(one.location.label, one.location.line)), one)
            required = []
            if len(found) == MOST_ERRORS:
                break
        elif chain and (match := _WARNED.match(line)):
            chain = _note(included, match["label"], chain)
        elif text := _unlocated(line):
            found.setdefault((text, None), Error(text))
    return tuple(found.values())


def last_words(log: str) -> str:
    """Returns the most informative line of a log without errors."""
    lines = log.splitlines()
    commands = {number + 1 for number, line in enumerate(lines) if line.startswith("FAILED: ")}
    printed = [line for number, line in enumerate(lines) if line.strip() and number not in commands]
    if spoken := [line for line in printed if not _ECHO.match(line)]:
        return _clean(spoken[-1])
    failed = next(filter(None, map(_FAILED.match, printed)), None)
    if failed and failed["code"]:
        return _clean(f"{failed['target']}: the command ended with {_status(int(failed['code']))} and printed nothing")
    return _clean(printed[-1]) if printed else "the compiler printed nothing"


def _note(included: dict[str, tuple[LogLocation, ...]], label: str, chain: Sequence[LogLocation]) -> list[LogLocation]:
    """Records the chain of includes that leads to a file, if there is one, and returns an empty chain."""
    if chain:
        included[label] = tuple(chain)
    return []


def _located(match: re.Match[str], behind: Sequence[str]) -> Error:
    if match["line"]:
        location = _location(match, int(match["column"] or 0))
    else:
        location = LogLocation(match["label"], int(match["nvcc"]))
    rest, details, origins = "", list[str](), list[LogLocation]()
    quoted = False
    for number, line in enumerate(behind):
        if not line.strip() or (not line[0].isspace() and not _NO_ERROR.match(line)):
            break
        if not line[0].isspace():
            quoted = True  # a note, with its own quotation
        elif found := _INSTANTIATED.match(line):
            origins.append(LogLocation(found["label"] or location.label, int(found["line"])))
        elif not quoted and _CARET.match(line) and number:
            rest, quoted = behind[number - 1][line.index("^") :].rstrip(), True
            details = details[:-1]
        elif not quoted:
            details.append(_clean(line))
    return Error(_clean(match["text"]) or "error", location, rest, tuple(details[:MOST_DETAILS]) if rest else (),
                 tuple(origins))


def _unlocated(line: str) -> str:
    """Returns the message of an error without a source line, or "" if the line is not an error."""
    if match := _PTXAS.match(line):
        return "" if _ECHO.match(line) else _clean(f"ptxas {match['severity']} : {match['text']} "
                                                   f"(line {match['line']} of the PTX)")
    if not _UNLOCATED.match(line) or _NO_ERROR.match(line) or _ECHO.match(line):
        return ""
    return _clean(_ADDRESS.sub("", re.sub(f"^{_LINKER}", "ld: ", line)))


def _location(match: re.Match[str], column: int = 0) -> LogLocation:
    return LogLocation(match["label"], int(match["line"]), column)


def _status(code: int) -> str:
    """Names an exit status of a shell, where a signal is 128 plus its number."""
    named = code - 128 in set(signal.Signals)
    return signal.Signals(code - 128).name if named else f"exit status {code}"


def _clean(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
