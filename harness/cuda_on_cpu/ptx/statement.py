"""Finds the asm statements of a CUDA source and splits them into text and operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..conditionals import split_directive
from ..tokens import Code, Token, tokenize
from .syntax import PtxError

KEYWORDS = ("asm", "__asm__", "__asm")
_QUALIFIERS = {"volatile", "__volatile__", "inline"}
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'", "\n": "", "r": "\r"}
_RAW = re.compile(r'R"([^()\\\s]{0,16})\((.*)\)\1"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """An operand of an asm statement."""

    constraint: str
    """Its letter, with `+` or `=` before it if it is an output."""
    expression: str
    """The C++ expression, on one line."""


@dataclass(frozen=True, slots=True)
class AsmStatement:
    """An asm statement. Positions are those of the keyword and the closing parenthesis."""

    start: int
    end: int
    text: str
    operands: tuple[AsmOperand, ...]


def read_statement(code: Code, position: int, strings: Mapping[str, str]) -> AsmStatement:
    """Returns the asm statement at a keyword. Raises PtxError if it cannot be split."""
    opening = code.after(position)
    while code.text(opening) in _QUALIFIERS:
        opening = code.after(opening)
    if code.text(opening) != "(":
        raise PtxError(f"`{code.text(position)} {code.text(opening)}`")
    closing = code.closing(opening)
    sections = list(_sections(code, opening + 1, closing))
    text = "".join(_piece(token, strings) for token in sections[0])
    operands = [operand for section in sections[1:3] for operand in _operands(section)]
    return AsmStatement(position, min(closing, len(code) - 1), text, tuple(operands))


def string_macros(tokens: list[Token]) -> dict[str, str]:
    """Returns the macros without parameters whose text is string literals alone. One with two texts is left out."""
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    for token in tokens:
        name, rest = split_directive(token.text) if token.kind == "directive" else ("", "")
        match = re.match(r"\s*(\w+)\s+(.*)", rest, re.DOTALL)
        if name != "define" or not match:
            continue
        body = [part for part in tokenize(match.group(2), directives=False) if part.kind != "space"]
        if body and all(part.kind == "string" for part in body):
            text = "".join(_decode(part.text) for part in body)
            if found.setdefault(match.group(1), text) != text:
                ambiguous.add(match.group(1))
    return {name: text for name, text in found.items() if name not in ambiguous}


def _sections(code: Code, start: int, end: int) -> Iterator[list[Token]]:
    """Iterates over the parts between colons, without spaces."""
    section: list[Token] = []
    position = start
    while position < end:
        token = code.tokens[position]
        inner = code.closing(position) if code.text(position) in ("(", "[", "{") else position
        if token.kind == "directive":
            raise PtxError("a directive inside the asm statement")
        if code.text(position) in (":", "::"):
            yield section
            if token.text == "::":
                yield []
            section = []
        elif inner > position:
            section += code.tokens[position : min(inner + 1, end)]
        elif token.kind != "space":
            section.append(token)
        position = inner + 1
    yield section


def _piece(token: Token, strings: Mapping[str, str]) -> str:
    if token.kind == "string":
        return _decode(token.text)
    if token.text in strings:
        return strings[token.text]
    raise PtxError(f"text that the preprocessor makes of `{token.text}`")


def _decode(literal: str) -> str:
    if raw := _RAW.fullmatch(literal):
        return raw.group(2)
    return re.sub(r"\\(\r?\n|.)", _unescape, literal[1:-1], flags=re.DOTALL)


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(1).lstrip("\r"), match.group(1))


def _operands(section: list[Token]) -> Iterator[AsmOperand]:
    part = Code(section)
    position = 0
    while position < len(part):
        opening = part.after(position)
        if position >= len(part) or section[position].kind != "string" or part.text(opening) != "(":
            raise PtxError("operands that a macro makes")
        closing = part.closing(opening)
        expression = "".join(_flat(token) for token in section[opening + 1 : closing]).strip()
        yield AsmOperand(_decode(section[position].text), expression)
        position = part.after(closing)
        if position < len(part) and part.text(position) != ",":
            raise PtxError("operands that a macro makes")
        position = part.after(position) if position < len(part) else position


def _flat(token: Token) -> str:
    return " " if token.kind == "space" else token.text
