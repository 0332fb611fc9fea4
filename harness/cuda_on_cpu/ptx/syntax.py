"""Parses the text of inline PTX into statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


class PtxError(Exception):
    """The PTX cannot be translated. The message says what is in the way, such as an instruction."""


@dataclass(frozen=True, slots=True)
class Name:
    """A register, an operand of the asm statement (`%0`), a special register or a label, without the `%`."""

    text: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number as it is written: `16`, `-1`, `0x7f`, `0f3F800000`, `1.5`."""

    text: str


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand: the sum of its terms in brackets."""

    terms: tuple[Name | Immediate, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations: `p|q`."""

    first: Name
    second: Name


Operand = Name | Immediate | Address | Vector | Pair


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction with its guard, the predicate after `@`."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Name | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A target of jumps."""

    name: str


@dataclass(frozen=True, slots=True)
class Registers:
    """A declaration of registers of one type, such as `b32` or `pred`."""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in braces, with names of their own."""

    statements: tuple[Statement, ...]


Statement = Instruction | Label | Registers | Block

_TOKEN = re.compile(
    r"""
    (?P<space>      (?: \s | //[^\n]* | /\*.*?\*/ )+ )
  | (?P<number>     0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} | 0[xX][0-9a-fA-F]+U?
                  | [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | [0-9]+U? )
  | (?P<name>       %%?[A-Za-z_$0-9][\w$]*(?:\.[xyzw]\b)? )
  | (?P<word>       \.?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)* )
  | (?P<sign>       [{}\[\],;:@!|+<>-] )
    """,
    re.VERBOSE | re.DOTALL,
)
# `%=` makes a label unique in the whole program, as it already is here.
_UNIQUE = "%="


def parse(text: str) -> tuple[Statement, ...]:
    """Returns the statements of `text`, in which escapes of string literals are resolved. Raises PtxError."""
    parser = _Parser(list(_tokens(text.replace(_UNIQUE, ""))))
    statements = parser.statements()
    if parser.tokens:
        raise PtxError(f"`{parser.tokens[-1]}`")
    return statements


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise PtxError(f"`{text[position:].split(maxsplit=1)[0]}`")
        if match.lastgroup != "space":
            yield match.group()
        position = match.end()


class _Parser:
    """Takes tokens from the end of a reversed list."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens[::-1]

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[-1 - ahead] if ahead < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        if not self.tokens or (wanted and self.tokens[-1] not in wanted):
            raise PtxError(f"`{self.peek() or 'the end of the text'}`")
        return self.tokens.pop()

    def accept(self, sign: str) -> bool:
        return self.peek() == sign and bool(self.tokens.pop())

    def statements(self) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while self.tokens and self.peek() != "}":
            if not self.accept(";"):
                found.append(self.statement())
        return tuple(found)

    def statement(self) -> Statement:
        if self.accept("{"):
            inner = self.statements()
            self.take("}")
            return Block(inner)
        if self.peek() == ".reg":
            return self.registers()
        if self.peek(1) == ":":
            label = Label(self.word())
            self.take(":")
            return label
        guard = self.predicate() if self.accept("@") else None
        return self.instruction(guard)

    def word(self) -> str:
        token = self.take()
        if not re.match(r"[A-Za-z_$]", token):
            raise PtxError(f"`{token}`")
        return token

    def registers(self) -> Registers:
        self.take(".reg")
        declared_type = self.take().removeprefix(".")
        names: list[str] = []
        while True:
            name = _plain(self.take())
            if self.accept("<"):
                count = _number(self.take())
                self.take(">")
                names += [f"{name}{index}" for index in range(count)]
            else:
                names.append(name)
            if self.take(",", ";") == ";":
                return Registers(declared_type, tuple(names))

    def predicate(self) -> Name:
        negated = self.accept("!")
        return Name(_plain(self.take()), negated)

    def instruction(self, guard: Name | None) -> Instruction:
        opcode = self.word()
        try:
            operands = tuple(self.operands())
        except PtxError as error:
            raise PtxError(f"`{opcode}`") from error
        return Instruction(opcode, operands, guard)

    def operands(self) -> Iterator[Operand]:
        while self.peek() not in (";", "}", ""):
            operand = self.operand()
            yield Pair(_as_name(operand), _as_name(self.operand())) if self.accept("|") else operand
            if not self.accept(","):
                break
        if self.peek() != "}" and self.tokens:
            self.take(";")

    def operand(self) -> Operand:
        if self.accept("{"):
            return Vector(tuple(self.listed("}")))
        if self.accept("["):
            return self.address()
        if self.accept("!"):
            return Name(_as_name(self.simple()).text, negated=True)
        return self.simple()

    def listed(self, end: str) -> Iterator[Operand]:
        while True:
            yield self.operand()
            if self.take(",", end) == end:
                return

    def address(self) -> Address:
        terms = [self.simple()]
        while self.accept("+"):
            terms.append(self.simple())
        if self.peek() == "-":
            terms.append(self.simple())
        self.take("]")
        return Address(tuple(terms))

    def simple(self) -> Name | Immediate:
        sign = "-" if self.accept("-") else ""
        token = self.take()
        if token[0].isdigit():
            return Immediate(sign + token)
        if sign or not (token[0] in "%_$" or token[0].isalpha()):
            raise PtxError(f"`{token}`")
        return Name(_plain(token))


def _as_name(operand: Operand) -> Name:
    if not isinstance(operand, Name):
        raise PtxError("an operand that is not a register")
    return operand


def _plain(token: str) -> str:
    return token.lstrip("%")


def _number(token: str) -> int:
    try:
        return int(token)
    except ValueError:
        raise PtxError(f"`{token}`") from None
