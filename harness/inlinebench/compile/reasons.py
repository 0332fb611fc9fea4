"""Why a build failed, in the words of its author's sources: the first errors, each with its line and a caret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from inlinebench.compile.log import Error, Place, errors, last_words
from inlinebench.compile.recipe import FUNCTIONS, Recipe, labelled
from inlinebench.records.build_request import BuildRequest

SHOWN = 3
WIDEST = 160
"""Of a longer source line only a part is quoted."""
TAB = 8
_LINE = re.compile(r'\s*#\s*(?:line\s+)?(\d{1,9})(?:\s+"([^"]*)")?')
_QUOTED = re.compile(r"[\"'`\u2018]([A-Za-z_]\w*)(?:\([^\"']*\))?[\"'\u2019]")
_TYPES = {"auto", "bool", "char", "const", "double", "float", "int", "long", "short", "signed", "unsigned", "void"}
_PREPROCESSOR = re.compile(r"#error|.*: No such file or directory$|.*\bmacro\b")
"""Errors in the text that the author wrote; nvcc has later ones found in what it makes of it."""
_OBJECT = re.compile(r"(?:\b\w+\.o:)?(?<![\w/])(?:tmpxft_[\w-]+_)?(main|cuda)\.(?:cudafe1\.)?(?:cpp|cu|o):")
"""How linkers name what was built of one of the two kinds of sources."""
_SOURCES = {"main": "cpp_sources", "cuda": "cuda_sources"}
_UNDECLARED = re.compile(r".*(?:was not declared in this scope|is not a member of|has not been declared)")
_SUGGESTED = re.compile(r"did you mean [\"'\u2018](.+?)[\"'\u2019]\?")


def reason(log: str, recipe: Recipe) -> str:
    """The first errors of a log, each in a line, or what the log says last if there are none.

    Below an error stands the source line that it is about. A caret marks the column if that is the author's, or the
    name that the error is about if that stands there once.
    """
    sources, found = _Sources(recipe), errors(log)
    # An unfinished source makes the bindings behind it wrong, too.
    own = [error for number, error in enumerate(found) if not number or not sources.is_about_bindings(error)]
    told = dict.fromkeys(map(sources.told, own))
    shown = [line for lines in list(told)[:SHOWN] for line in lines]
    left = len(told) - SHOWN
    more = [f"and {left} more error{'s' * (left > 1)}"] if left > 0 else []
    return "\n".join([*shown, *more]) or last_words(log)


class _Sources:
    """What the author of a request wrote, line by line, and what the C++ compiler got of it."""

    def __init__(self, recipe: Recipe) -> None:
        request = self._request = recipe.request or BuildRequest("nothing")
        self._written = _numbered([*labelled(request.cpp_sources, "cpp_sources"),
                                   *labelled(request.cuda_sources, "cuda_sources")])
        self._compiled = _numbered(text for name, text in recipe.files.items() if name.endswith(".cpp"))

    def told(self, error: Error) -> tuple[str, ...]:
        """An error in one line, and its quotation."""
        origin = next(filter(self._knows, reversed(error.origins)), None)
        for place in filter(None, (error.place, origin)):
            if place.label == FUNCTIONS:
                return (self._binding(error.text, self._function(place.line)),)
        if error.place is None:
            return (_OBJECT.sub(lambda match: f"{_SOURCES[match[1]]}:", error.text),)
        place = replace(error.place, column=self._column(error.place, error))
        own = self._knows(place)
        quotation = self._quoted(place, error.text) if own else ()
        required = ""
        if origin is not None and (origin.label, origin.line) != (place.label, place.line):
            required = f" (required from {origin.label}:{origin.line})"
            quotation = quotation or self._quoted(replace(origin, column=self._column(origin, error)), "")
        return (f"{_shown(place)}: error: {error.text}{required}", *(f"  {each}" for each in error.details), *quotation)

    def is_about_bindings(self, error: Error) -> bool:
        """Whether it is in the lines that bind `functions`, but about no single one of them."""
        at = error.place
        return at is not None and at.label == FUNCTIONS and self._function(at.line) is None

    def _function(self, line: int) -> str | None:
        """The one of `functions` that is bound in this line."""
        names = list(self._request.functions or ())
        return names[line - 2] if 2 <= line < 2 + len(names) else None

    def _knows(self, place: Place) -> bool:
        return place.label == FUNCTIONS or (place.label, place.line) in self._written

    def _column(self, place: Place, error: Error) -> int:
        """The column in the author's line, 0 if it isn't known: nvcc says none, and a translated line may be longer."""
        key = (place.label, place.line)
        if key not in self._written:
            return place.column
        author, rest = self._written[key], ""
        if place.column and (self._compiled.get(key) == author or _PREPROCESSOR.match(error.text)):
            return _in_characters(place, author)
        if place.column and key in self._compiled:
            rest = self._compiled[key][_in_characters(place, self._compiled[key]) - 1 :]
        elif place == error.place:
            rest = error.rest
        # What follows is as the author wrote it, whatever became of the text in front.
        return len(author) - len(rest) + 1 if rest and author.endswith(rest) else 0

    def _quoted(self, place: Place, text: str) -> tuple[str, ...]:
        """The line with its number, and below it a caret at the column, or at the name that a message is about."""
        line = self._written[place.label, place.line]
        if not line.strip():
            return ()
        column = place.column or _column_of_name(text, line)
        before, shown = len(line[: max(0, column - 1)].expandtabs(TAB)), line.expandtabs(TAB)
        start = max(0, before - WIDEST // 2) if len(shown) > WIDEST else 0
        caret = (f"{'':5} | {'':{before - start}}^",) if column else ()
        return (f"{place.line:5} | {shown[start : start + WIDEST]}", *caret)

    def _binding(self, text: str, name: str | None) -> str:
        """An error in the lines that bind `functions` to Python."""
        if name is None:
            return f"cpp_sources must be complete, but the bindings that follow them do not compile: {text}"
        subject = f"functions names '{name}'"
        if "unresolved overloaded function" in text:
            return f"{subject}, but cpp_sources has several functions, or a template, of that name: it must be one"
        if not _UNDECLARED.match(text):
            return f"{subject}, which cannot be bound to Python: {text}"
        said = f"{subject}, but cpp_sources does not declare it"
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) for source in self._request.cuda_sources):
            return f"{said}: a declaration in cuda_sources is not enough"
        suggested = _SUGGESTED.search(text)
        return f"{said}; did you mean '{suggested[1]}'?" if suggested else said


def _numbered(texts: Iterable[str]) -> dict[tuple[str, int], str]:
    """Lines by the file and the number that `#line` gives them."""
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


def _in_characters(place: Place, line: str) -> int:
    """GCC's column as one of characters. Of a file that it can read it says where something is on a screen, and of
    others, as the sources of `load_inline` are, the byte."""
    before = place.column - 1
    if not place.label.startswith("/"):
        return len(line.encode(errors="replace")[:before].decode(errors="ignore")) + 1
    return next((end for end in range(len(line)) if len(line[:end].expandtabs(TAB)) >= before), len(line)) + 1


def _shown(place: Place) -> str:
    """A place as GCC writes it, with a header as it is included."""
    label = place.label.rpartition("/include/")[2] if place.label.startswith("/") else place.label
    return f"{label}:{place.line}:{place.column}" if place.column else f"{label}:{place.line}"


def _column_of_name(text: str, line: str) -> int:
    """Where the one name stands that a message is about; 0 if several do, or it stands there more than once."""
    names = set(_QUOTED.findall(text)) - _TYPES
    found = [match for name in names for match in re.finditer(rf"\b{name}\b", line)]
    return found[0].start() + 1 if len(found) == 1 else 0
