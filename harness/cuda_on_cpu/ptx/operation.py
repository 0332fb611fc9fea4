"""What the translation of one instruction works with: its words, and C++ for its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .special import SPECIAL
from .syntax import Address, Immediate, Instruction, Name, Operand, Pair, PtxError, Vector

SPACE = "::cuda_on_cpu::ptx::"
"""The namespace of the instructions in C++."""
_BLOCK_SCOPES = ("cta", "cluster")
"""Scopes of one block. Clusters are not supported, so that every block is a cluster of its own."""
SCOPES = (*_BLOCK_SCOPES, "gpu", "gl", "sys")

TYPES: dict[str, str] = {
    "pred": "bool",
    **{f"{kind}{bits}": f"std::uint{bits}_t" for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"std::int{bits}_t" for bits in (8, 16, 32, 64)},
    "f16": "__half",
    "bf16": "__nv_bfloat16",
    "f16x2": "__half2",
    "bf16x2": "__nv_bfloat162",
    "f32": "float",
    "f64": "double",
}
"""The types of PTX in C++."""

INTEGERS = frozenset(name for name in TYPES if name[0] in "bus" and name[1:].isdigit())
FLOATS = frozenset(["f16", "bf16", "f16x2", "bf16x2", "f32", "f64"])
_ROUNDINGS = {"rn": "nearest", "rz": "zero", "rm": "down", "rp": "up"}


@dataclass(frozen=True, slots=True)
class Variable:
    """A C++ variable that holds a register's bits, or the value of a predicate."""

    name: str
    predicate: bool = False


@dataclass
class Operation:
    """An instruction while it is translated. Each word of its opcode has to be taken, so that none is ignored."""

    instruction: Instruction
    variables: Mapping[str, Variable]
    """What the names of its operands mean."""
    words: list[str] = field(default_factory=list)
    """The words that are left of its opcode."""

    def __post_init__(self) -> None:
        self.words = self.instruction.opcode.split(".")
        self.name = self.words.pop(0)

    def unknown(self) -> PtxError:
        return PtxError(f"`{self.instruction.opcode}`")

    # --- words --------------------------------------------------------------------------------------------------------

    def flag(self, *words: str) -> bool:
        """Takes one of these words, if there is one."""
        return self.pick(*words) != ""

    def pick(self, *words: str) -> str:
        """Takes the first word that is one of these, and returns it, or "" if there is none."""
        for word in self.words:
            if word in words:
                self.words.remove(word)
                return word
        return ""

    def choose(self, *words: str) -> str:
        """Takes one of these words. Raises PtxError if there is none."""
        if word := self.pick(*words):
            return word
        raise self.unknown()

    def drop(self, *words: str) -> None:
        """Takes all of these words, which have no effect on the CPU."""
        self.words = [word for word in self.words if word not in words]

    def block_scope(self) -> bool:
        """Takes the scope, and returns whether it is that of a block. Without one it is that of the device."""
        return self.pick(*SCOPES) in _BLOCK_SCOPES

    def type(self, *allowed: str) -> str:
        """Takes the first word that is a type. Raises PtxError if it is none of those allowed."""
        word = self.choose(*TYPES)
        if allowed and word not in allowed:
            raise self.unknown()
        return word

    def rounding(self, *, default: str = "rn") -> str:
        """Takes the rounding mode, and returns the name of its constant in C++."""
        return f"{SPACE}Round::{_ROUNDINGS[self.pick(*_ROUNDINGS) or default]}"

    def finish(self, *counts: int) -> None:
        """Raises PtxError if a word was not taken, or if the number of operands is none of these."""
        if self.words or (counts and len(self.operands) not in counts):
            raise self.unknown()

    # --- operands -----------------------------------------------------------------------------------------------------

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def variable(self, operand: Operand) -> Variable:
        if isinstance(operand, Name) and operand.text in self.variables:
            return self.variables[operand.text]
        raise PtxError(f"`{_show(operand)}` in `{self.instruction.opcode}`")

    def is_predicate(self, operand: Operand) -> bool:
        return isinstance(operand, Name) and operand.text in self.variables and self.variable(operand).predicate

    def value(self, operand: Operand, kind: str) -> str:
        """Returns an expression of the C++ type of `kind`."""
        if isinstance(operand, Immediate):
            return _immediate(operand, kind, self)
        if kind == "pred":
            return self.predicate(operand)
        if isinstance(operand, Name) and operand.text not in self.variables and operand.text in SPECIAL:
            return f"{SPACE}as<{TYPES[kind]}>({SPECIAL[operand.text]})"
        variable = self.variable(operand)
        if variable.predicate:
            raise self.unknown()
        return f"{SPACE}as<{TYPES[kind]}>({variable.name})"

    def values(self, kind: str, operands: tuple[Operand, ...] | None = None) -> str:
        """Returns the sources, or `operands`, as arguments of one type."""
        return ", ".join(self.value(operand, kind) for operand in operands or self.operands[1:])

    def predicate(self, operand: Operand) -> str:
        variable = self.variable(operand)
        if not variable.predicate:
            raise self.unknown()
        return f"!{variable.name}" if isinstance(operand, Name) and operand.negated else variable.name

    def put(self, operand: Operand, value: str) -> str:
        """Returns the statement that writes a destination. `_` drops the value."""
        if operand == Name("_"):
            return f"static_cast<void>({value});"
        return f"{SPACE}put({self.variable(operand).name}, {value});"

    def vector(self, operand: Operand) -> tuple[Operand, ...]:
        """Returns the parts of a vector, or the operand itself as the only one."""
        return operand.items if isinstance(operand, Vector) else (operand,)

    def address(self, operand: Operand) -> str:
        """Returns the address of a memory operand as a 64-bit integer."""
        if not isinstance(operand, Address):
            raise self.unknown()
        return " + ".join(self._address_term(term) for term in operand.terms)

    def _address_term(self, term: Name | Immediate) -> str:
        if isinstance(term, Immediate):
            return self.value(term, "b64")
        return f"std::uint64_t{{{self.variable(term).name}}}"

    def array(self, name: str, operand: Operand, kind: str = "b32") -> str:
        """Returns the declaration of a C++ array that holds the parts of a vector."""
        parts = self.vector(operand)
        return f"{TYPES[kind]} {name}[{len(parts)}] = {{{self.values(kind, parts)}}};"

    def put_array(self, name: str, operand: Operand) -> str:
        """Returns the statements that write the elements of a C++ array to the parts of a vector."""
        return " ".join(self.put(part, f"{name}[{index}]") for index, part in enumerate(self.vector(operand)))

    def destinations(self) -> tuple[Operand, Operand]:
        """Returns the two parts of the destination `a|b`; the second is `_` if there is one alone."""
        first = self.operands[0]
        return (first.first, first.second) if isinstance(first, Pair) else (first, Name("_"))


Handler = Callable[[Operation], str]
HANDLERS: dict[str, Handler] = {}
"""The translations by the first word of the opcode. Each returns C++ statements."""


def translates(*names: str) -> Callable[[Handler], Handler]:
    """Registers the translation of instructions."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def flags(*values: bool) -> Iterator[str]:
    """Iterates over template arguments for truth values."""
    return ("true" if value else "false" for value in values)


def fence(block_scope: bool, order: str) -> str:
    """Returns the statement of a fence in C++. `order` is its word: "acquire" and "release" are halves of one."""
    return f"{SPACE}fence({', '.join(flags(block_scope, order != 'release', order != 'acquire'))});"


def _immediate(operand: Immediate, kind: str, operation: Operation) -> str:
    text = operand.text.removesuffix("U")
    negative, digits = text.startswith("-"), text.lstrip("-")
    start = digits[:2].lower()
    if kind == "pred":
        raise operation.unknown()
    if start in ("0f", "0d"):
        bits, own = int(digits[2:], 16), "f32" if start == "0f" else "f64"
        if kind not in (own, f"b{own[1:]}") or negative:
            raise operation.unknown()
        return f"{SPACE}as<{TYPES[kind]}>(std::uint{own[1:]}_t{{{bits}u}})"
    if "." in digits or (start != "0x" and "e" in digits.lower()):
        if kind not in ("f32", "f64"):
            raise operation.unknown()
        return f"static_cast<{TYPES[kind]}>({text})"
    if kind in ("f32", "f64"):
        raise operation.unknown()
    number = int(digits, 16 if start == "0x" else 10) * (-1 if negative else 1)
    return f"{SPACE}as<{TYPES[kind]}>(std::uint64_t{{{number % 2**64}u}})"


def _show(operand: Operand) -> str:
    return operand.text if isinstance(operand, Name | Immediate) else "an operand"
