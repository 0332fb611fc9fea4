"""Shows source code: highlighted, with the numbers of its lines, and the lines that a reason names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.c_like import CudaLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

from inlinebench import foreign

AROUND = 4
"""Lines that are shown before and after a named line."""
MOST_NAMED = 4
"""More lines than these are not marked: then a quoted line, such as a brace, does not say where the error is."""
LONGEST = 200_000
"""Longer sources, in characters, are not highlighted."""
_KINDS = {Comment.Preproc: "p", Comment.PreprocFile: "p", Comment: "c", Keyword.Type: "t", Keyword: "k", String: "s",
          Number: "m", Name.Function: "f", Name.Class: "t", Name.Builtin: "t", Name.Decorator: "p"}
"""The classes of tokens. A token has that of its first kind here, or none."""
_CPP = re.compile(r"#include|__global__|[;{}]$", re.MULTILINE)
_IN_FILE = re.compile(r"\(([^()\s]+\.py), line (\d+)\)")
_QUOTED = re.compile(r" *\d+ \| (.*\S)")


@dataclass(frozen=True)
class SourceLine:
    """A line of a source."""

    number: int
    """Its number, from 1; 0 for lines that are left out."""
    code: Markup
    """Its text as HTML."""
    named: bool = False
    """Whether the reason names it."""


class _SolutionLexer(PythonLexer):  # type: ignore[misc, unused-ignore]
    """Python with C++ and CUDA in its string literals."""

    def get_tokens_unprocessed(
        self, text: str, stack: Sequence[str] = ("root",)
    ) -> Iterator[tuple[int, _TokenType, str]]:
        start, literal = 0, ""
        for index, kind, value in super().get_tokens_unprocessed(text, stack):
            if kind in String:
                start, literal = (start if literal else index), literal + value
                continue
            yield from _literal(start, literal)
            literal = ""
            yield index, kind, value
        yield from _literal(start, literal)


def _literal(start: int, text: str) -> Iterator[tuple[int, _TokenType, str]]:
    """Yields the tokens of adjacent string literals: those of C++ or CUDA if they contain it."""
    if "\n" in text and _CPP.search(text):
        lexer: Any = CudaLexer() if "__" in text else CppLexer()
        for index, kind, value in lexer.get_tokens_unprocessed(text):
            yield start + index, kind, value
    elif text:
        yield start, String, text


def lines(source: str, reason: str, file: str) -> tuple[SourceLine, ...]:
    """Returns all lines of a solution's source. Marks those that the reason names, by their numbers in `file` or by
    quoting them."""
    text = foreign.block(source)
    named = _named(text.split("\n"), reason, file)
    return tuple(SourceLine(number, code, number in named) for number, code in enumerate(_highlighted(text), 1))


def excerpt(found: Sequence[SourceLine]) -> tuple[SourceLine, ...]:
    """Returns the named lines with those around them, and a line without a number for each gap."""
    near = sorted({number for line in found if line.named
                   for number in range(line.number - AROUND, line.number + AROUND + 1)} & set(range(1, len(found) + 1)))
    shown: list[SourceLine] = []
    for number in near:
        if shown and shown[-1].number != number - 1:
            shown.append(SourceLine(0, Markup("⋯")))
        shown.append(found[number - 1])
    return tuple(shown)


def _highlighted(text: str) -> list[Markup]:
    """Returns the lines of a text as HTML. Only what has a colour is marked up, and a span ends with its line."""
    if len(text) > LONGEST:
        return [escape(line) for line in text.split("\n")]
    marked: list[list[str]] = [[]]
    for kind, tokens in groupby(_SolutionLexer().get_tokens_unprocessed(text), key=lambda token: _kind(token[1])):
        first, *rest = "".join(value for _, _, value in tokens).split("\n")
        marked[-1].append(_span(kind, first))
        marked += [[_span(kind, line)] for line in rest]
    return [Markup("".join(parts)) for parts in marked]


def _kind(token: _TokenType) -> str:
    return next((name for kind, name in _KINDS.items() if token in kind), "")


def _span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>' if kind and text.strip() else str(escape(text))


def _named(source: Sequence[str], reason: str, file: str) -> set[int]:
    quoted = {_spaced(match[1]) for match in map(_QUOTED.fullmatch, foreign.lines(reason)) if match}
    found = {number for number, line in enumerate(source, 1) if _spaced(line) in quoted}
    own = {int(number) for name, number in _IN_FILE.findall(reason) if name.rpartition("/")[2] == file}
    return own | (found if len(found) <= MOST_NAMED else set())


def _spaced(line: str) -> str:
    return " ".join(line.split())
