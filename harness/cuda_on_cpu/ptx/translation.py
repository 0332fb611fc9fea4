"""Translates the text of an asm statement into C++ statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# The modules that register translations.
from . import arithmetic, conversions, matrices, memory, synchronization  # noqa: F401
from .operation import HANDLERS, SPACE, Operation, Variable
from .statement import AsmOperand
from .syntax import Block, Instruction, Label, Name, PtxError, Registers, Statement, parse

_PREFIX = "cuda_on_cpu_ptx_"
_REGISTERS = {"h": "std::uint16_t", "r": "std::uint32_t", "l": "std::uint64_t", "f": "std::uint32_t",
              "d": "std::uint64_t"}
"""The register of each constraint."""


def to_cpp(text: str, operands: tuple[AsmOperand, ...]) -> str:
    """Returns one C++ statement, without the semicolon at its end, on one line. Raises PtxError if it cannot."""
    statements = parse(text)
    names: dict[str, Variable] = {}
    before, after = [], []
    for index, operand in enumerate(operands):
        variable = Variable(f"{_PREFIX}{index}")
        names[str(index)] = variable
        before.append(_read(operand, variable.name))
        if operand.constraint.startswith(("+", "=")):
            after.append(f"{SPACE}output({variable.name}_target, {variable.name});")
    body = _Body()
    body.walk(statements, names, {})
    labels = [f"__label__ {', '.join(body.labels)};"] if body.labels else []
    return " ".join(["do {", *labels, *before, *body.declarations, *body.code, *after, "} while (0)"])


def _read(operand: AsmOperand, name: str) -> str:
    letters = operand.constraint.lstrip("+=&").lstrip("&")
    if letters == "n":
        return f"constexpr std::uint64_t {name} = static_cast<std::uint64_t>({operand.expression});"
    if letters not in _REGISTERS:
        raise PtxError(f'the constraint "{operand.constraint}"')
    register = _REGISTERS[letters]
    kind = "float" if letters == "f" else "double" if letters == "d" else register
    if operand.constraint.startswith("="):
        return f"auto&& {name}_target = {operand.expression}; {register} {name} = {SPACE}undefined<{register}>();"
    if operand.constraint.startswith("+"):
        return f"auto&& {name}_target = {operand.expression}; {register} {name} = {SPACE}input<{kind}>({name}_target);"
    return f"{register} {name} = {SPACE}input<{kind}>({operand.expression});"


class _Body:
    """Collects the code. Registers are declared before it, because C++ has no jumps past a declaration."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.declarations: list[str] = []
        self.code: list[str] = []

    def walk(self, block: tuple[Statement, ...], outer: Mapping[str, Variable], targets: Mapping[str, str]) -> None:
        """Translates the statements of a block, in which the names and labels of the blocks around it hold."""
        names, jumps = dict(outer), dict(targets)
        for label in (each for each in block if isinstance(each, Label)):
            jumps[label.name] = f"{_PREFIX}label_{len(self.labels)}"
            self.labels.append(jumps[label.name])
        for statement in block:
            if isinstance(statement, Registers):
                names.update(self._declare(statement))
            elif isinstance(statement, Label):
                self.code.append(f"{jumps[statement.name]}:;")
            elif isinstance(statement, Block):
                self.walk(statement.statements, names, jumps)
            else:
                self.code.append(_instruction(statement, names, jumps))

    def _declare(self, registers: Registers) -> Iterator[tuple[str, Variable]]:
        kind = _register_type(registers.type)
        for name in registers.names:
            variable = Variable(f"{_PREFIX}r{len(self.declarations)}", kind == "bool")
            value = "false" if kind == "bool" else f"{SPACE}undefined<{kind}>()"
            self.declarations.append(f"{kind} {variable.name} = {value};")
            yield name, variable


def _register_type(name: str) -> str:
    if name == "pred":
        return "bool"
    bits = "32" if name in ("f16x2", "bf16x2") else name.lstrip("abcdefghijklmnopqrstuvwxyz")
    if bits not in ("8", "16", "32", "64"):
        raise PtxError(f"registers of type `.{name}`")
    return f"std::uint{bits}_t"


def _instruction(instruction: Instruction, names: Mapping[str, Variable], jumps: Mapping[str, str]) -> str:
    operation = Operation(instruction, names)
    if operation.name == "bra":
        code = _jump(operation, jumps)
    elif operation.name in HANDLERS:
        code = HANDLERS[operation.name](operation)
    else:
        raise operation.unknown()
    guard = f"if ({operation.predicate(instruction.guard)}) " if instruction.guard else ""
    return f"{guard}{{ {code} }}"


def _jump(operation: Operation, jumps: Mapping[str, str]) -> str:
    operation.drop("uni")
    operation.finish(1)
    target = operation.operands[0]
    if not isinstance(target, Name) or target.text not in jumps:
        raise operation.unknown()
    return f"goto {jumps[target.text]};"
