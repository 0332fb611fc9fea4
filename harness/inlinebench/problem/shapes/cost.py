"""Estimates from a problem's text what an evaluation at given sizes costs on the CPU."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

from inlinebench.problem.shapes import literals
from inlinebench.problem.shapes.constants import Constants, SizeKind, assignments, leaves

BLOCK = 256
"""The threads of a block that computes one element of a matrix product."""
TILE = 32
"""The rows of a matrix that a block may compute, of which there may be fewer."""
SHORT = 8
"""Sizes of batched matrices above so many tiles raise the cost: a block computes a whole tile, of however few rows."""
_SMALL = 16
_SLIDES = re.compile("conv|pool|unfold", re.IGNORECASE)
"""Operators for which solutions use one thread for each output, because it needs few products."""
_MULTIPLIES = re.compile("matmul|[bm]mm?$|einsum|linear|tensordot|attention|cdist", re.IGNORECASE)
"""Operators for which a solution may use a block of threads for each output."""
_SCANS = re.compile("cum(sum|prod|max|min)", re.IGNORECASE)
"""Operators for which a solution may add up everything before each output anew."""


@dataclass(frozen=True)
class Cost:
    """An estimated cost, or its limits."""

    elements: int
    """The elements of the largest input."""
    size: int
    """The largest size."""
    work: int
    """An estimate of the multiplications: the product of all sizes, those in the calls of `get_inputs` and
    `get_init_inputs` included. If a file has a single size to multiply matrices with, the elements times that size. For
    scans, the elements times the largest size."""
    threads: int
    """The threads of a kernel with one block for each output of a matrix product; 0 for other problems."""
    rows: int
    """The blocks of a kernel with one for each row of the largest input, if its rows are as long as those of the first
    one. For problems that multiply matrices, an estimate of the work in whole tiles."""

    def is_within(self, limits: Cost) -> bool:
        """Whether no part is above its limit."""
        return all(mine <= limit for mine, limit in zip(astuple(self), astuple(limits), strict=True))


def cost_of(tree: ast.Module, constants: Constants) -> Cost:
    """Returns the cost of a file whose constants have these values. Numbers that are named by themselves replace those
    of `get_inputs` and `get_init_inputs`."""
    replaced = literals.replace(tree, constants)
    functions = literals.functions(replaced)
    named = {name: value for name, value in constants.items() if not name.isdecimal()}
    sizes = dict(named)
    for name, expression in assignments(tree.body):
        if name not in named:  # computed from others, such as `channels = dim`
            sizes[name] = _known(expression, sizes)
    elements = 1
    rows: list[int] = []
    matrices = 1
    for function in functions:
        known = sizes | literals.local_values(function)
        made = [literals.dimensions(node) for node in ast.walk(function) if isinstance(node, ast.Call)]
        elements = max(elements, *(_product(call, known) for call in made), 1)
        rows += [_last(call[-1], known) for call in made if _product(call, known) > 1]
        matrices = max(matrices, *(_product(call[:-2], known) for call in made), 1)
    numbers = [*_numbers(named), *_written_out(replaced)]
    work = math.prod(filter(None, numbers))
    largest = max(numbers, default=0)
    if any(map(_SCANS.search, _operators(tree))):
        work = max(work, elements * largest)
    if not _multiplies(tree):
        return Cost(elements, largest, work, 0, elements // (rows[0] if rows else 1))
    widths = {number for name, value in named.items() if SizeKind.of(name) is SizeKind.SIZE for number in leaves(value)}
    if len(large := [width for width in widths if width > _SMALL]) == 1:
        work = max(work, elements * large[0])
    return Cost(elements, largest, work, _threads(numbers, rows[0] if rows else 1), _in_tiles(numbers, matrices))


def _numbers(constants: Mapping[str, Any]) -> Iterator[int]:
    """Yields the numbers whose product is the work: neither those in tuples that occur alone as well, such as in the
    shape of a bias, nor the numbers of heads and groups, into which other sizes are divided."""
    single = {abs(value) for value in constants.values() if isinstance(value, int)}
    for name, value in constants.items():
        if SizeKind.of(name) not in (SizeKind.HEADS, SizeKind.GROUPS):
            yield from (abs(number) for number in leaves(value) if isinstance(value, int) or abs(number) not in single)


def _written_out(tree: ast.Module) -> Iterator[int]:
    """Yields the numbers in `get_inputs` and `get_init_inputs`, each as often as the call that has it most often."""
    by_call: dict[int, Counter[int]] = {}
    for site in literals.sites(tree):
        if site.kind is not SizeKind.LABELS:
            by_call.setdefault(id(site.at), Counter())[abs(site.number)] += 1
    most: Counter[int] = Counter()
    for numbers in by_call.values():
        most |= numbers
    yield from most.elements()


def slides_in_volumes(tree: ast.Module) -> bool:
    """Whether a file has windows that slide in three dimensions."""
    return any(_SLIDES.search(name) and name.lower().endswith("3d") for name in _operators(tree))


def _multiplies(tree: ast.Module) -> bool:
    """Whether a file multiplies matrices and has no sliding windows."""
    operators = _operators(tree)
    if any(map(_SLIDES.search, operators)):
        return False
    return any(isinstance(node, ast.MatMult) for node in ast.walk(tree)) or any(map(_MULTIPLIES.search, operators))


@lru_cache(maxsize=1)
def _operators(tree: ast.Module) -> list[str]:
    return [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]


def _threads(numbers: Collection[int], row: int) -> int:
    """Returns the threads for the outputs of a product that adds up rows of the first input, of this length."""
    sizes = [number for number in numbers if number > 1]
    return BLOCK * (math.prod(sizes) // row if len(sizes) > 1 else row**2)


def _in_tiles(numbers: Collection[int], matrices: int) -> int:
    """Returns an estimate of the work of a kernel that computes whole tiles, however small the matrices are."""
    longest = sorted(max(TILE, number) for number in (*numbers, 1, 1, 1))[-3:]
    batched = matrices * max(TILE, longest[-1] // SHORT) if matrices > 1 else TILE
    return max(batched, math.prod(longest) // TILE**3)


def _product(sizes: Collection[ast.expr], constants: Mapping[str, Any]) -> int:
    """Returns the product of the known sizes in the arguments of a call."""
    return math.prod(_known(each, constants) for each in sizes)


def _last(size: ast.expr, constants: Mapping[str, Any]) -> int:
    """Returns the last of the sizes in an argument of a call."""
    value = constants.get(size.value.id) if isinstance(size, ast.Starred) and isinstance(size.value, ast.Name) else None
    return list(leaves(value))[-1] if isinstance(value, tuple | list) and value else _known(size, constants)


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
