"""Reads a definition: the axes, inputs and outputs of a kernel, and the Python source of its reference."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from inlinebench.catalog.traces.fields import JsonObject, json_object, text_of
from inlinebench.catalog.workloads import NOT_CONSTANTS
from inlinebench.parsing import parse, parse_expression

FLOATS = ("float64", "float32", "float16", "bfloat16")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2")
INTEGERS = {"int64": 1024, "int32": 1024, "int16": 1024, "int8": 128}
"""The dtypes of whole numbers, with the bound of their random values: from minus that to below it."""
DTYPES = (*FLOATS, *SMALL_FLOATS, *INTEGERS, "bool")
"""The dtypes that inputs and outputs can have."""
DEFINED = frozenset({"Model", "get_init_inputs", "_outputs", "_checked", "_draw",
                     "SHAPES", "WORKLOADS", "RANGES", "LEVEL", "TAGS", "BACKWARD"})
"""Names with a meaning in the text of a problem, which a reference cannot define."""
TAKEN = DEFINED | {"torch", "run", "get_inputs", "self", "made", "recorded"}
"""Names that axes and inputs cannot have."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub)
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, *_OPERATORS)


@dataclass(frozen=True)
class Tensor:
    """An input or an output."""

    name: str
    shape: tuple[str, ...] | None
    """Names of axes, and numbers as texts. None for a Python scalar."""
    dtype: str
    """One of `DTYPES`."""


@dataclass(frozen=True)
class Definition:
    """A kernel to write, as a file describes it."""

    path: Path
    name: str
    """The name that its file has in it, which workloads refer to."""
    operation: str
    """`op_type`, or "" without one."""
    tags: tuple[str, ...]
    sizes: Mapping[str, int]
    """The values of the constant axes."""
    variables: tuple[str, ...]
    """The axes whose values a workload gives."""
    expressions: Mapping[str, str]
    """The axes that are computed from others, as Python expressions of these."""
    inputs: tuple[Tensor, ...]
    """The arguments of the reference, in order."""
    outputs: tuple[Tensor, ...]
    """What the reference returns, in order."""
    constraints: tuple[str, ...]
    """Python expressions of axes and inputs that must hold."""
    reference: str
    """Python source that defines the function `run`."""
    drawing: str
    """The function of the reference that draws the inputs of type `custom`, or "" without one."""


def read_definition(path: Path) -> Definition:
    """Returns the definition of a file. Raises DefinitionError if it is none, and OSError if it cannot be read."""
    given = json_object(text_of(path), path)
    axes = given.entries("axes")
    kinds = {name: axis.get("type", str) for name, axis in axes.items()}
    for name, kind in kinds.items():
        if kind not in ("const", "var", "expr"):
            raise axes[name].error(f"the type {kind!r} is unknown; it must be const, var or expr")
    definition = Definition(
        path, given.get("name", str), given.get("op_type", str, ""), given.texts("tags"),
        {name: axes[name].get("value", int) for name, kind in kinds.items() if kind == "const"},
        tuple(name for name, kind in kinds.items() if kind == "var"),
        {name: _arithmetic(axes[name], kinds) for name, kind in kinds.items() if kind == "expr"},
        tuple(_tensor(name, each, axes) for name, each in given.entries("inputs").items()),
        tuple(_tensor(name, each, axes) for name, each in given.entries("outputs").items()),
        tuple(ast.unparse(_expression(each, given)) for each in given.texts("constraints")),
        given.get("reference", str), given.get("custom_inputs_entrypoint", str, ""),
    )
    _check(definition, given)
    return definition


def _tensor(name: str, given: JsonObject, axes: Iterable[str]) -> Tensor:
    if (dtype := given.get("dtype", str)) not in DTYPES:
        raise given.error(f"the dtype {dtype!r} is not supported; the dtypes are {', '.join(DTYPES)}")
    if "shape" not in given.values:
        raise given.error("the field 'shape' is missing; it is null for a Python scalar")
    if given.values["shape"] is None:
        return Tensor(name, None, dtype)
    shape = tuple(str(each) for each in given.get("shape", list))
    for each in shape:
        if each not in axes and not each.isdecimal():
            raise given.error(f"its shape has the axis {each!r}, which 'axes' lacks")
    return Tensor(name, shape, dtype)


def _arithmetic(axis: JsonObject, names: Iterable[str]) -> str:
    """Returns the expression of an axis. Raises DefinitionError unless it is arithmetic of whole numbers and axes."""
    text = axis.get("expression", str)
    tree = _expression(text, axis)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names:
            raise axis.error(f"its expression has the axis {node.id!r}, which 'axes' lacks")
        whole = isinstance(node, ast.Constant) and type(node.value) is int
        if not whole and not isinstance(node, _ARITHMETIC):
            raise axis.error(f"its expression {text!r} must be arithmetic of whole numbers and axes")
    return ast.unparse(tree)


def _check(definition: Definition, given: JsonObject) -> None:
    """Raises DefinitionError if parts of a definition contradict each other, or cannot be told apart in one file."""
    tree = _module(definition.reference, given)
    run = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"), None)
    if run is None:
        raise given.error("its reference defines no function 'run'")
    if not _accepts(run.args, len(definition.inputs)):
        raise given.error(f"run({ast.unparse(run.args)}) does not accept the {len(definition.inputs)} inputs of the "
                          f"definition by position: {', '.join(each.name for each in definition.inputs)}")
    if clashes := DEFINED.intersection(_bound(tree)):
        raise given.error(f"its reference defines {min(clashes)!r}, a name that problem files need; rename it there")
    bound = {name: "the reference" for name in _bound(tree)} | {name: "the problem file" for name in TAKEN}
    axes = [*definition.sizes, *definition.variables, *definition.expressions]
    if reserved := [name for name in NOT_CONSTANTS if name in axes]:
        raise given.error(f"the axis {reserved[0]!r} has the name of a key of WORKLOADS; rename it")
    for name in [*axes, *(each.name for each in definition.inputs)]:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise given.error(f"the name {name!r} is not a Python name")
        if name in bound:
            raise given.error(f"the name {name!r} also means something else in {bound[name]}; rename the axis or input")
        bound[name] = "another axis or input"
    if definition.drawing and definition.drawing not in _bound(tree):
        raise given.error(f"its reference defines no function {definition.drawing!r} to draw inputs")


def _accepts(parameters: ast.arguments, count: int) -> bool:
    positional = len(parameters.posonlyargs) + len(parameters.args)
    required = positional - len(parameters.defaults)
    named = sum(default is None for default in parameters.kw_defaults)
    return required <= count and (count <= positional or parameters.vararg is not None) and not named


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a module binds at its top level."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name)
                        and isinstance(each.ctx, ast.Store))


def _module(text: str, given: JsonObject) -> ast.Module:
    try:
        return parse(text)
    except SyntaxError as error:
        raise given.error(f"its reference is not Python: line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise given.error(f"its reference is not Python: {error}") from None


def _expression(text: str, given: JsonObject) -> ast.Expression:
    try:
        return parse_expression(text)
    except (SyntaxError, ValueError):
        raise given.error(f"{text!r} is not a Python expression") from None
