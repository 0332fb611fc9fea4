"""Finds the functions of a source by its braces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .tokens import Code

_SCOPES = {"namespace", "class", "struct", "union"}
_ATTRIBUTES = set(
    ["__launch_bounds__", "__attribute__", "__align__", "alignas", "__maxnreg__", "decltype", "noexcept", "__declspec"]
)
_NO_NAMES = {"if", "for", "while", "switch", "catch", "return", "sizeof"}


@dataclass(frozen=True)
class Function:
    """A function with a body. Positions are those of its `{` and `}`, and of the first token of its header."""

    name: str
    header: int
    opening: int
    closing: int
    on_device: bool


def find_functions(code: Code) -> list[Function]:
    """Returns the functions of namespaces and classes in order. Functions inside functions belong to the outer one."""
    return list(_in_scope(code, 0, len(code)))


def _in_scope(code: Code, start: int, end: int) -> Iterator[Function]:
    header = position = start
    while position < end:
        text = code.text(position)
        if code.tokens[position].kind == "directive" or text in (";", "}"):
            header = position + 1
        elif text in ("(", "["):
            position = code.closing(position)
        elif text == "{":
            closing = code.closing(position)
            yield from _classify(code, header, position, closing)
            header = closing + 1
            position = closing
        position += 1


def _classify(code: Code, header: int, opening: int, closing: int) -> Iterator[Function]:
    words = _header_words(code, header, opening)
    name = _function_name(code, header, opening)
    if (_SCOPES & words.keys() and not name) or words.keys() <= {"extern"}:
        yield from _in_scope(code, opening + 1, closing)
    elif name:
        yield Function(name, header, opening, closing, bool({"__global__", "__device__"} & words.keys()))


def _header_words(code: Code, start: int, end: int) -> dict[str, int]:
    """Returns the words outside brackets and template parameters, with their positions."""
    words: dict[str, int] = {}
    position = start
    while position < end:
        text = code.text(position)
        if text in ("(", "["):
            position = code.closing(position)
        elif text == "<":
            position = max(code.angle_closing(position), position)
        elif code.is_word(position):
            words.setdefault(text, position)
        position += 1
    return words


def _function_name(code: Code, start: int, end: int) -> str:
    """Returns the word before the first parenthesis that is not of an attribute, or "" if this is not a function."""
    position = start
    while position < end:
        text = code.text(position)
        if text == "<":
            position = max(code.angle_closing(position), position)
        elif text == "=":
            return ""
        elif text == "(":
            before = code.before(position)
            name = code.text(before)
            if code.is_word(before) and name not in _ATTRIBUTES and name not in _NO_NAMES:
                return name
            if name and not code.is_word(before) and _is_operator(code, before, start):
                return "operator"
            position = code.closing(position)
        position += 1
    return ""


def _is_operator(code: Code, position: int, start: int) -> bool:
    """Whether `operator` comes before this position, with at most three signs between."""
    for _ in range(4):
        if position < start:
            return False
        if code.text(position) == "operator":
            return True
        position = code.before(position)
    return False
