"""Explains why a build failed: the first errors, each with the line of the author's source and a caret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from inlinebench.builds.request import BuildRequest
from inlinebench.compile.hints import hint
from inlinebench.compile.log import Error, LogLocation, errors, last_words
from inlinebench.compile.recipe import FUNCTIONS, Recipe, labelled

SHOWN = 3
WIDEST = 160
"""Longer source lines are quoted in part."""
TAB = 8
_LINE = re.compile(r'\s*#\s*(?:line\s+)?(\d{1,9})(?:\s+"([^"]*)")?')
_QUOTED = re.compile(r"[\"'`\u2018]([A-Za-z_]\w*)(?:\([^\"']*\))?[\"'\u2019]")
_TYPES = {"auto", "bool", "char", "const", "double", "float", "int", "long", "short", "signed", "unsigned", "void"}
_PREPROCESSOR = re.compile(r"#error|.*: No such file or directory$|.*\bmacro\b")
"""Errors that nvcc finds in the text that the author wrote; it finds later errors in preprocessed text."""
_OBJECT = re.compile(r"(?:\b\w+\.o:)?(?<![\w/])(?:tmpxft_[\w-]+_)?(main|cuda)\.(?:cudafe1\.)?(?:cpp|cu|o):")
"""Linkers' names for the objects of C++ and CUDA sources."""
_SOURCES = {"main": "cpp_sources", "cuda": "cuda_sources"}
_QUOTATION = re.compile(r" *\d* \| ")
"""How a line below a message begins that quotes the author's source, or has a caret below it."""
_UNDECLARED = re.compile(r".*(?:was not declared in this scope|is not a member of|has not been declared)")
_SUGGESTED = re.compile(r"did you mean [\"'\u2018](.+?)[\"'\u2019]\?")


def reason(log: str, recipe: Recipe) -> str:
    """Returns the first errors of a log, one per line, or the log's last informative line if it has no errors.

    The source line is quoted below each error. A caret marks the column if it is known in the author's source, or the
    name in the message if the line has it exactly once. A hint follows if there is one.
    """
    sources, found = _Sources(recipe), errors(log)
    # An incomplete source causes errors in the bindings that follow it.
    own = [error for number, error in enumerate(found) if not number or not sources.is_about_bindings(error)]
    described = dict.fromkeys(map(sources.describe, own))
    shown = _with_hints(list(described)[:SHOWN])
    left = len(described) - SHOWN
    more = [f"and {left} more error{'s' * (left > 1)}"] if left > 0 else []
    return "\n".join([*shown, *more]) or last_words(log)


def _with_hints(described: Iterable[tuple[str, ...]]) -> list[str]:
    """Returns the lines of errors, each with a hint below it that no earlier error has."""
    lines = list[str]()
    for error in described:
        quoted = [line for line in error if _QUOTATION.match(line)]
        message = " ".join(line for line in error if line not in quoted)
        found = hint(message, _QUOTATION.sub("", quoted[0]) if quoted else "")
        lines += error if not found or found in lines else (*error, found)
    return lines


class _Sources:
    """The author's sources line by line, and the texts that the C++ compiler got for them."""

    def __init__(self, recipe: Recipe) -> None:
        request = self._request = recipe.request or BuildRequest("nothing")
        self._written = _numbered([*labelled(request.cpp_sources, "cpp_sources"),
                                   *labelled(request.cuda_sources, "cuda_sources")])
        self._compiled = _numbered(text for name, text in recipe.files.items() if name.endswith(".cpp"))

    def describe(self, error: Error) -> tuple[str, ...]:
        """Returns an error in one line, followed by its quotation."""
        origin = next(filter(self._knows, reversed(error.origins)), None)
        for location in filter(None, (error.location, origin)):
            if location.label == FUNCTIONS:
                return (self._binding(error.text, self._function(location.line)),)
        if error.location is None:
            return (_OBJECT.sub(lambda match: f"{_SOURCES[match[1]]}:", error.text),)
        location = replace(error.location, column=self._column(error.location, error))
        own = self._knows(location)
        quotation = self._quoted(location, error.text) if own else ()
        required = ""
        if origin is not None and (origin.label, origin.line) != (location.label, location.line):
            required = f" (required from {origin.label}:{origin.line})"
            quotation = quotation or self._quoted(replace(origin, column=self._column(origin, error)), "")
        details = [f"  {each}" for each in error.details]
        return (f"{_shown(location)}: error: {error.text}{required}", *details, *quotation)

    def is_about_bindings(self, error: Error) -> bool:
        """Whether an error is in the lines that bind `functions`, but not in the line of a single function."""
        at = error.location
        return at is not None and at.label == FUNCTIONS and self._function(at.line) is None

    def _function(self, line: int) -> str | None:
        """Returns the one of `functions` that this line binds."""
        names = list(self._request.functions or ())
        return names[line - 2] if 2 <= line < 2 + len(names) else None

    def _knows(self, location: LogLocation) -> bool:
        return location.label == FUNCTIONS or (location.label, location.line) in self._written

    def _column(self, location: LogLocation, error: Error) -> int:
        """Returns the column in the author's line, or 0 if unknown: nvcc prints none, and translation may move text."""
        key = (location.label, location.line)
        if key not in self._written:
            return location.column
        author, rest = self._written[key], ""
        if location.column and (self._compiled.get(key) == author or _PREPROCESSOR.match(error.text)):
            return _in_characters(location, author)
        if location.column and key in self._compiled:
            rest = self._compiled[key][_in_characters(location, self._compiled[key]) - 1 :]
        elif location == error.location:
            rest = error.rest
        # The text from the error on is the author's, even if the text before it was changed.
        return len(author) - len(rest) + 1 if rest and author.endswith(rest) else 0

    def _quoted(self, location: LogLocation, text: str) -> tuple[str, ...]:
        """Returns the line with its number, and a caret below the column or below the name in the message."""
        line = self._written[location.label, location.line]
        if not line.strip():
            return ()
        column = location.column or _column_of_name(text, line)
        before, shown = len(line[: max(0, column - 1)].expandtabs(TAB)), line.expandtabs(TAB)
        start = max(0, before - WIDEST // 2) if len(shown) > WIDEST else 0
        caret = (f"{'':5} | {'':{before - start}}^",) if column else ()
        return (f"{location.line:5} | {shown[start : start + WIDEST]}", *caret)

    def _binding(self, text: str, name: str | None) -> str:
        """Describes an error in the lines that bind `functions` to Python."""
        if name is None:
            return f"cpp_sources must be complete, but the bindings that follow them do not compile: {text}"
        subject = f"functions names '{name}'"
        if "unresolved overloaded function" in text:
            return f"{subject}, but cpp_sources has several functions, or a template, of that name: it must be unique"
        if not _UNDECLARED.match(text):
            return f"{subject}, which cannot be bound to Python: {text}"
        missing = f"{subject}, but cpp_sources does not declare it"
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) for source in self._request.cuda_sources):
            return f"{missing}: a declaration in cuda_sources is not enough"
        suggested = _SUGGESTED.search(text)
        return f"{missing}; did you mean '{suggested[1]}'?" if suggested else missing


def _numbered(texts: Iterable[str]) -> dict[tuple[str, int], str]:
    """Returns lines by the file name and number that `#line` gives them."""
    found: dict[tuple[str, int], str] = {}
    for text in texts:
        label, number = "", 0
        for line in text.split("\n"):
            if match := _LINE.match(line):
                label, number = match[2] or label, int(match[1])
            elif label:
                found[label, number] = line.rstrip()
                number += 1
    return found


def _in_characters(location: LogLocation, line: str) -> int:
    """Converts GCC's column to a character index from 1. For files that GCC can open, the column is a position on the
    screen; for others, such as the sources of `load_inline`, it is a byte."""
    before = location.column - 1
    if not location.label.startswith("/"):
        return len(line.encode(errors="replace")[:before].decode(errors="ignore")) + 1
    return next((end for end in range(len(line)) if len(line[:end].expandtabs(TAB)) >= before), len(line)) + 1


def _shown(location: LogLocation) -> str:
    """Formats a location as GCC does. Headers are named as in an include directive."""
    label = location.label.rpartition("/include/")[2] if location.label.startswith("/") else location.label
    return f"{label}:{location.line}:{location.column}" if location.column else f"{label}:{location.line}"


def _column_of_name(text: str, line: str) -> int:
    """Returns the column of the name in a message, or 0 if the line has several such names or occurrences."""
    names = set(_QUOTED.findall(text)) - _TYPES
    found = [match for name in names for match in re.finditer(rf"\b{name}\b", line)]
    return found[0].start() + 1 if len(found) == 1 else 0
