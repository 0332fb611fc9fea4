"""Derives small shapes from the text of a problem file that declares none, for evaluations on the CPU.

A derived shape replaces whole numbers, and tuples and lists of them, that the file assigns at module level. Relations
between them are kept, because references and kernels rely on them: a number that divides another still does, a multiple
of 32 stays one, any other number keeps its remainder by 32 (or by 8, in the smallest shape) and becomes no multiple of
32, and a smaller number stays the smaller one. Batch sizes are only kept as divisors: what else they have in common
with other sizes is a coincidence.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Constants = dict[str, Any]
"""Values of constants by name: whole numbers, or nested tuples and lists of them."""

SMALL = 16
"""Numbers up to this are kept: sizes of windows, strides, dimensions, groups. Only batch sizes may become smaller."""
WARP = 32
"""Multiples of this stay multiples, and other sizes do not become multiples."""
MOST_ELEMENTS = 1 << 20
"""The most elements of an input at a derived shape."""
MOST_SIZE = 1 << 12
"""The largest number."""
MOST_WORK = 1 << 24
"""The largest product of all numbers, those written in `get_inputs` and `get_init_inputs` included. For most operators
it is an upper bound of the multiplications."""
MOST_DIGITS = 64
"""The largest exponent, number of bits to shift by, and number of repetitions that is computed."""
_OF_WINDOWS = ("kernel", "stride", "padding", "dilation")
"""Parts of names of sliding windows. That such a number divides a size means nothing."""


@dataclass(frozen=True)
class _Step:
    """How far sizes are reduced."""

    floor: float
    """Sizes are not reduced below this."""
    distinct: int
    """Sizes that differ become sizes that differ, up to about this one. Larger ones may become equal."""
    batch: float
    """Batch sizes are not reduced below this. If it is below 32, they need not stay multiples of 32."""
    remainder: int = WARP
    """Sizes keep their remainder by this."""


_STEPS = (
    _Step(256, 1024, 256), _Step(128, 512, 128), _Step(64, 256, 64), _Step(64, 256, 8), _Step(32, 128, 32),
    _Step(32, 128, 4), _Step(32, 64, 2), _Step(32, 32, 2), _Step(SMALL, SMALL, 2), _Step(SMALL, SMALL, 2, 8),
)
"""From large shapes to small ones."""
_LARGER = 2
"""The number of larger steps to try if the reference does not run at the chosen one."""
_ONLY_BATCH = _Step(math.inf, 0, 2)

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow, ast.LShift: operator.lshift,
}


class _NotWhole(Exception):
    """An expression is not built from whole numbers and constants alone."""


def derive(tree: ast.Module) -> tuple[Constants, ...]:
    """Returns the constants of the shapes to try in turn, until the reference runs; none if the file is small as it is.

    The first is the largest that is small enough. Then follow the smallest one, for a reference that takes too long,
    and larger ones, for a reference that does not run with sizes so small; at last the file as written (`{}`).
    """
    assigned = _constants(tree)
    written = {name: _resolved(value, assigned) for name, value in assigned.items()}
    sizes = {number for name, value in written.items() for number in leaves(value) if number > SMALL or _is_batch(name)}
    if not sizes or _is_small(tree, written):
        return ()
    shapes = _different(_at(assigned, written, step) for step in _STEPS)
    if not shapes:
        return ()
    chosen = next((index for index, shape in enumerate(shapes) if _is_small(tree, written | shape)), len(shapes) - 1)
    larger = reversed(shapes[max(0, chosen - _LARGER):chosen])
    return (*_different([shapes[chosen], shapes[-1], *larger, _at(assigned, written, _ONLY_BATCH)]), {})


def _different(shapes: Iterable[Constants | None]) -> list[Constants]:
    """Returns the shapes that differ from the file and from each other, in order."""
    found: list[Constants] = []
    for shape in shapes:
        if shape and shape not in found:
            found.append(shape)
    return found


def is_no_larger(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether no constant of a derived shape is larger than that of another one of the same file."""
    return other.keys() <= one.keys() and all(
        mine <= theirs for name in other for mine, theirs in zip(leaves(one[name]), leaves(other[name]), strict=True))


def leaves(value: Any) -> Iterator[int]:
    """Yields the whole numbers of a constant."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from leaves(each)
    elif not isinstance(value, str):
        yield value


def _at(assigned: Constants, written: Constants, step: _Step) -> Constants | None:
    """Returns the constants that differ at a step, or None if the relations between the numbers cannot be kept."""
    numbers = {(number, _is_batch(name)) for name, value in assigned.items() for number in leaves(value)}
    parts = {(number, _is_batch(name)) for name, value in assigned.items() for number in leaves(value)
             if number > 1 and not any(word in name.lower() for word in _OF_WINDOWS)}
    reduced: dict[tuple[int, bool], int] = {}
    largest = 0
    for number, is_batch in sorted(numbers):
        if is_batch:
            reduced[number, is_batch] = _batch(number, step)
            continue
        factor = math.lcm(*(reduced[part] for part in parts if part[0] < number and number % part[0] == 0))
        found = _size(number, factor, step, largest)
        if found is None:
            return None
        reduced[number, is_batch] = largest = found
    shape = {name: _mapped(value, reduced, _is_batch(name)) for name, value in assigned.items()}
    shape = {name: _resolved(value, shape) for name, value in shape.items()}
    return {name: value for name, value in shape.items() if value != written[name]}


def _is_batch(name: str) -> bool:
    return "batch" in name.lower()


def _size(number: int, factor: int, step: _Step, largest: int) -> int | None:
    """Returns the smallest size at a step for `number`, a multiple of `factor` and not below the `largest` so far."""
    if number <= max(SMALL, step.floor):
        return number
    least = max(int(step.floor), largest + 1 if largest < step.distinct else largest)
    first = -(-least // factor) * factor
    fitting = range(first, min(number, first + factor * WARP) + 1, factor)
    return next((size for size in fitting if (size - number) % step.remainder == 0
                 and (size % WARP == 0) == (number % WARP == 0)), None)


def _batch(number: int, step: _Step) -> int:
    """Returns the smallest divisor of a batch size at a step."""
    if number <= step.batch:
        return number
    factor = WARP if number % WARP == 0 and step.batch >= WARP else 1
    others = number // factor
    small = range(1, math.isqrt(others) + 1)
    divisors = {each for part in small if others % part == 0 for each in (part, others // part)}
    return min(factor * each for each in divisors if factor * each >= step.batch)


def _mapped(value: Any, reduced: Mapping[tuple[int, bool], int], is_batch: bool) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_mapped(each, reduced, is_batch) for each in value)
    return value if isinstance(value, str) else reduced[value, is_batch]


def _resolved(value: Any, constants: Constants) -> Any:
    """Returns a value with the names of other constants replaced by their values."""
    if isinstance(value, tuple | list):
        return type(value)(_resolved(each, constants) for each in value)
    return _resolved(constants[value], constants) if isinstance(value, str) else value


def _constants(tree: ast.Module) -> Constants:
    """Returns the constants that are whole numbers, tuples or lists, and that the file assigns once. In tuples and
    lists are also names of others: `(batch, 3)` follows `batch`."""
    bound = Counter(node.id for statement in tree.body
                    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                    for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    found: Constants = {}
    for name, expression in _assignments(tree):
        try:
            if bound[name] == 1 and not isinstance(expression, ast.Name):
                found[name] = _whole(expression, found)
        except _NotWhole:
            continue
    return found


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        value = statement.value
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name):
                yield target.id, value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts, strict=False)
                yield from ((each.id, part) for each, part in pairs if isinstance(each, ast.Name))


def _whole(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Returns the value of an expression of whole numbers. Raises _NotWhole, also for `2 * dim`, which follows `dim`
    anyway."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Tuple | ast.List) and node.elts:
        parts = [each.id if isinstance(each, ast.Name) and each.id in known else _whole(each, known)
                 for each in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _computed(_OPERATORS[type(node.op)], _whole(node.left, known), _whole(node.right, known))
    raise _NotWhole


def _computed(function: Callable[[Any, int], Any], left: Any, right: Any) -> Any:
    repeated = function is operator.mul and isinstance(left, list | tuple)
    whole = isinstance(left, int) or repeated
    if not whole or not isinstance(right, int):
        raise _NotWhole
    if (function not in (operator.add, operator.sub) and right <= 0) or (
            right > MOST_DIGITS and (repeated or function in (operator.pow, operator.lshift))):
        raise _NotWhole
    return function(left, right)


def _is_small(tree: ast.Module, constants: Mapping[str, Any]) -> bool:
    """Whether the inputs and the estimated work are small enough for the CPU."""
    given = [node for node in tree.body if isinstance(node, ast.FunctionDef)
             and node.name in ("get_inputs", "get_init_inputs")]
    calls = [node for function in given for node in ast.walk(function) if isinstance(node, ast.Call)]
    sizes = dict(constants)
    for name, expression in _assignments(tree):
        if name not in constants:  # computed from others, such as `channels = dim`
            sizes[name] = _known(expression, sizes)
    elements = max((_product(call.args, sizes) for call in calls), default=1)
    single = {abs(value) for value in constants.values() if isinstance(value, int)}
    numbers = [abs(number) for value in constants.values() for number in leaves(value)
               if isinstance(value, int) or abs(number) not in single]  # such as the shape of a bias
    numbers += [node.value for function in given for node in ast.walk(function)
                if isinstance(node, ast.Constant) and type(node.value) is int]
    return (elements <= MOST_ELEMENTS and max(numbers, default=0) <= MOST_SIZE
            and math.prod(filter(None, numbers)) <= MOST_WORK)


def _product(sizes: Collection[ast.expr], constants: Mapping[str, Any]) -> int:
    """Returns the product of the known sizes in the arguments of a call."""
    return math.prod(_known(each, constants) for each in sizes)


def _known(node: ast.expr, constants: Mapping[str, Any]) -> int:
    if isinstance(node, ast.Starred):
        return _known(node.value, constants)
    if isinstance(node, ast.Tuple | ast.List):
        return _product(node.elts, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _product((node.left, node.right), constants)
    value = constants.get(node.id, 1) if isinstance(node, ast.Name) else getattr(node, "value", 1)
    numbers = leaves(value) if isinstance(value, int | tuple | list) else ()
    return math.prod(max(1, number) for number in numbers)
