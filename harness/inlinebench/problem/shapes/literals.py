"""Sizes that a problem file writes as numbers in `get_inputs` and `get_init_inputs`.

These are the numbers in the arguments of calls (`torch.randn(16, 3, 224, 224)`), in what the functions return, and the
values of variables and of parameters. A derived shape names such a size by its number: `224=32`. The number is replaced
wherever it is one of these, in both functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inlinebench.problem.shapes.constants import Constants, NotWhole, SizeKind, assignments, whole

FUNCTIONS = ("get_inputs", "get_init_inputs")
_NO_SIZES = ("range", "manual_seed", "seed")
"""Functions whose arguments are not sizes."""
_DIMENSIONS = 3
"""The first number of a call with at least as many is a batch size, unless it occurs elsewhere."""


@dataclass(frozen=True)
class Site:
    """A place of a number."""

    node: ast.expr
    """The number, or an expression of numbers such as `2 ** 20`."""
    number: int
    """Its value."""
    kind: SizeKind
    """What it is."""
    at: ast.AST
    """The call that it is an argument of, or the statement that it is in."""


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Returns the functions that give the sizes of a problem."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS]


def read(tree: ast.Module) -> dict[int, SizeKind]:
    """Returns the numbers and their kinds. A number that is of several kinds is a size."""
    found: dict[int, SizeKind] = {}
    for site in sites(tree):
        if found.setdefault(site.number, site.kind) is not site.kind:
            found[site.number] = SizeKind.SIZE
    return found


def replace(tree: ast.Module, constants: Mapping[str, Any]) -> ast.Module:
    """Returns a file with the numbers replaced that `constants` names. It shares the other parts with `tree`."""
    if not any(map(str.isdecimal, constants)):
        return tree
    new = {id(site.node): constants[str(site.number)] for site in sites(tree) if str(site.number) in constants}
    body = [_Replacing(new).visit(node) if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS else node
            for node in tree.body]
    return ast.Module(body, tree.type_ignores)


def local_values(function: ast.FunctionDef) -> Constants:
    """Returns the whole numbers of a function's variables and parameters, by name."""
    found: Constants = {}
    for name, expression in _named(function):
        try:
            found[name] = whole(expression, {})
        except NotWhole:
            continue
    return found


def _named(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter, value in (*zip(positional[len(positional) - len(arguments.defaults):], arguments.defaults,
                                  strict=True),
                             *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
        if value is not None:
            yield parameter.arg, value
    yield from assignments(function.body)


def sites(tree: ast.Module) -> Iterator[Site]:
    """Yields the places of numbers. Those of a call in another one's arguments are their own."""
    for function in functions(tree):
        for name, expression in _named(function):
            yield from _in(expression, SizeKind.of(name), expression)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _name(node.func) not in _NO_SIZES:
                yield from _in_call(node)
            elif isinstance(node, ast.Return) and node.value is not None:
                yield from _in(node.value, SizeKind.SIZE, node)


def dimensions(call: ast.Call) -> list[ast.expr]:
    """Returns the arguments of a call that are the sizes of a tensor, if it makes one: not the bounds of `randint`."""
    tuples = [each for each in call.args if isinstance(each, ast.Tuple | ast.List)]
    if tuples and (len(call.args) == 1 or _name(call.func) == "randint"):
        return tuples[0].elts
    return [] if _name(call.func) == "randint" else call.args


def _in_call(node: ast.Call) -> Iterator[Site]:
    """Yields the numbers in a call's arguments, but not those in calls among them."""
    sizes = dimensions(node)
    for each in node.args if _name(node.func) == "randint" else ():
        if not isinstance(each, ast.Tuple | ast.List):
            yield from _in(each, SizeKind.LABELS, node)
    for index, each in enumerate(sizes):
        is_batch = index == 0 and len(sizes) >= _DIMENSIONS
        is_grid = index > 1 and len(sizes) > _DIMENSIONS
        yield from _in(each, SizeKind.BATCH if is_batch else SizeKind.GRID if is_grid else SizeKind.SIZE, node)
    for keyword in node.keywords:
        yield from _in(keyword.value, SizeKind.of(keyword.arg or ""), node)


def _in(node: ast.expr, kind: SizeKind, at: ast.AST) -> Iterator[Site]:
    if isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _in(each, kind, at)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from _in(value, SizeKind.of(str(key.value)) if isinstance(key, ast.Constant) else kind, at)
    else:
        try:
            number = whole(node, {})
        except NotWhole:
            return
        if isinstance(number, int):
            yield Site(node, number, kind, at)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


class _Replacing(ast.NodeTransformer):
    """Copies a function, with other numbers in place of some nodes."""

    def __init__(self, new: Mapping[int, int]) -> None:
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        if id(node) in self._new:
            return ast.copy_location(ast.Constant(self._new[id(node)]), node)
        changed = {field: self._copied(value) for field, value in ast.iter_fields(node)}
        return ast.copy_location(type(node)(**changed), node)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._copied(each) for each in value]
        return self.visit(value) if isinstance(value, ast.AST) else value
