"""Reads the sizes of a problem file from its text, and what each of them is: a batch size, a number of heads, ..."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

Constants = dict[str, Any]
"""Values of constants by name: whole numbers, or nested tuples and lists of them."""

MOST_DIGITS = 64
"""The largest exponent, number of bits to shift by, and number of repetitions that is computed."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow, ast.LShift: operator.lshift,
}


class SizeKind(Enum):
    """What a number is, by the name that the file gives it."""

    BATCH = "batch"
    """A batch size."""
    GRID = "height|width|depth|length|len$|seq|image|dim_?[1-9]$|(?:^|_)[hwdt]$"
    """A length of an image, a volume or a sequence. It is not divided into heads or groups."""
    HEADS = "head"
    """A number of heads."""
    GROUPS = "group"
    """A number of groups."""
    HEAD_SIZE = "size of a head"
    GROUP_SIZE = "size of a group"
    WINDOW = "kernel|stride|padding|dilation"
    """A part of a sliding window. That such a number divides a size means nothing."""
    LABELS = "class|vocab"
    """A number of classes or tokens. It is not divided into heads or groups."""
    SIZE = ""
    """Any other number."""

    @classmethod
    def of(cls, name: str) -> SizeKind:
        """Returns the kind of a name."""
        name = name.lower()
        for part, of_part in ((cls.HEADS, cls.HEAD_SIZE), (cls.GROUPS, cls.GROUP_SIZE)):
            if part.value in name:
                return of_part if _OF_PART.search(name) else part
        order = (cls.WINDOW, cls.BATCH, cls.LABELS, cls.GRID)
        return next((kind for kind in order if re.search(kind.value, name)), cls.SIZE)


_OF_PART = re.compile("dim|size|width|channel|feature|len|per_|^d_|_d$")
"""Parts of names of the size of a head or a group, not of their number."""


def read(tree: ast.Module) -> Constants:
    """Returns the constants that are whole numbers, tuples or lists, and that the file assigns once. In tuples and
    lists are also names of others: `(batch, 3)` follows `batch`."""
    bound = Counter(node.id for statement in tree.body
                    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                    for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    found: Constants = {}
    for name, expression in assignments(tree.body):
        try:
            if bound[name] == 1 and not isinstance(expression, ast.Name):
                found[name] = whole(expression, found)
        except NotWhole:
            continue
    return found


def assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yields the names that statements assign, each with its expression."""
    for statement in body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        value = statement.value
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name):
                yield target.id, value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts, strict=False)
                yield from ((each.id, part) for each, part in pairs if isinstance(each, ast.Name))


class NotWhole(Exception):
    """An expression is not built from whole numbers and constants alone."""


def whole(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Returns the value of an expression of whole numbers. Raises NotWhole, also for `2 * dim`, which follows `dim`
    anyway."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Tuple | ast.List) and node.elts:
        parts = [each.id if isinstance(each, ast.Name) and each.id in known else whole(each, known)
                 for each in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _computed(_OPERATORS[type(node.op)], whole(node.left, known), whole(node.right, known))
    raise NotWhole


def _computed(function: Callable[[Any, int], Any], left: Any, right: Any) -> Any:
    repeated = function is operator.mul and isinstance(left, list | tuple)
    if not (isinstance(left, int) or repeated) or not isinstance(right, int):
        raise NotWhole
    if (function not in (operator.add, operator.sub) and right <= 0) or (
            right > MOST_DIGITS and (repeated or function in (operator.pow, operator.lshift))):
        raise NotWhole
    return function(left, right)


def resolved(value: Any, constants: Constants) -> Any:
    """Returns a value with the names of other constants replaced by their values."""
    if isinstance(value, tuple | list):
        return type(value)(resolved(each, constants) for each in value)
    return resolved(constants[value], constants) if isinstance(value, str) else value


def leaves(value: Any) -> Iterator[int]:
    """Yields the whole numbers of a constant."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from leaves(each)
    elif not isinstance(value, str):
        yield value


def is_no_larger(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether no constant of a derived shape is larger than that of another one of the same file."""
    return other.keys() <= one.keys() and all(
        mine <= theirs for name in other for mine, theirs in zip(leaves(one[name]), leaves(other[name]), strict=True))
