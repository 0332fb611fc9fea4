"""Derives small shapes from the text of a problem file that declares none, for evaluations on the CPU.

A derived shape replaces whole numbers, and tuples and lists of them: those that the file assigns at module level, and
those in `get_inputs` and `get_init_inputs`. Relations between them are kept, because references and kernels rely on
them: a number that divides another still does, a multiple of 32 stays one, any other number keeps its remainder by 32
(or by 8, in the smallest shape) and becomes no multiple of 32, and a smaller number stays the smaller one. Batch sizes
are only kept as divisors: what else they have in common with other sizes is a coincidence. Windows that slide in three
dimensions make lengths smaller still, at the expense of these relations.

What is divided into heads or groups keeps the size of a head or a group, if the work allows it, because these
decide how accurate a result is and how a kernel divides its work. Their number becomes smaller instead.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inlinebench.problem.shapes import constants, literals
from inlinebench.problem.shapes.constants import Constants, SizeKind, leaves, resolved
from inlinebench.problem.shapes.cost import Cost, cost_of, slides_in_volumes
from inlinebench.problem.shapes.steps import (
    CONFIRMING_LIMITS,
    CONFIRMING_STEPS,
    LARGER,
    LIMITS,
    ONLY_BATCH,
    SMALL,
    STEPS,
    VOLUME_STEPS,
    WARP,
    Reduction,
)

Number = tuple[int, SizeKind]
"""A number of a file. Equal numbers of a kind are replaced by equal numbers."""


@dataclass(frozen=True)
class Derived:
    """The derived shapes of a problem. Both are empty for a file that is small as it is."""

    shapes: tuple[Constants, ...] = ()
    """The constants of the shapes to try in turn, until the reference runs.

    The first is the largest that is small enough. Then follow the smallest one, for a reference that takes too long,
    and larger ones, for a reference that does not run with sizes so small; at last the file with fewer batches, and as
    written (`{}`).
    """
    confirming: tuple[Constants, ...] = ()
    """The constants of shapes with the file's own sizes, if the work allows it, but few batches and short lengths.
    A failure is tried again at the first at which the reference runs."""


def derive(tree: ast.Module) -> Derived:
    """Returns the derived shapes of a problem file.

    Shapes with other numbers in `get_inputs` come before those without, because `Model` may need the ones it has.
    """
    named = _File(tree, constants.read(tree), {})
    numbers = {str(number): named.kind_of(number, kind) for number, kind in literals.read(tree).items()
               if number > SMALL or (kind is SizeKind.BATCH and number > 1)}
    with_numbers = _File(tree, {**named.assigned, **{name: int(name) for name in numbers}}, numbers)
    files = [with_numbers, named] if numbers else [named]
    shapes = _different(shape for file in files for shape in file.shapes())
    if not shapes:
        return Derived()
    shapes = _different([*shapes, named.at(ONLY_BATCH)])
    confirming = [shape for file in files if (shape := file.confirming(shapes[0]))]
    return Derived((*shapes, {}), tuple(_different(confirming)))


def _different(shapes: Iterable[Constants | None]) -> list[Constants]:
    """Returns the shapes that differ from the file and from each other, in order."""
    found: list[Constants] = []
    for shape in shapes:
        if shape and shape not in found:
            found.append(shape)
    return found


@dataclass(frozen=True)
class _File:
    """A problem file, and those of its numbers that a derived shape may replace."""

    tree: ast.Module
    assigned: Constants
    """The constants, with names of others in tuples and lists."""
    kinds: Mapping[str, SizeKind]
    """The kinds of constants whose names do not tell them."""

    @property
    def written(self) -> Constants:
        """The values of the constants as the file has them."""
        return {name: resolved(value, self.assigned) for name, value in self.assigned.items()}

    def kind(self, name: str) -> SizeKind:
        """Returns the kind of a constant."""
        return self.kinds.get(name) or SizeKind.of(name)

    def kind_of(self, number: int, kind: SizeKind) -> SizeKind:
        """Returns the kind of a number that the file writes out, which is the kind of a constant of the same value."""
        same = {self.kind(name) for name, value in self.assigned.items() if number in leaves(value)}
        return kind if not same or kind in same else next(iter(same)) if len(same) == 1 else SizeKind.SIZE

    def shapes(self) -> list[Constants]:
        """Returns the shapes to try in turn; none if the file is small as it is."""
        sizes = {number for name, value in self.assigned.items() for number in leaves(value)
                 if number > SMALL or self.kind(name) is SizeKind.BATCH}
        if not sizes or self._is_within(LIMITS, {}):
            return []
        shapes = _different(self.at(step) for step in (VOLUME_STEPS if slides_in_volumes(self.tree) else STEPS))
        if not shapes:
            return []
        fitting = (index for index, shape in enumerate(shapes) if self._is_within(LIMITS, shape))
        chosen = next(fitting, len(shapes) - 1)
        larger = reversed(shapes[max(0, chosen - LARGER):chosen])
        return _different([shapes[chosen], shapes[-1], *larger])

    def confirming(self, derived: Constants) -> Constants | None:
        """Returns the largest shape to confirm a failure at, if it has larger sizes than the derived one."""
        shapes = _different(self.at(step) for step in CONFIRMING_STEPS)
        fitting = next((shape for shape in shapes if self._is_within(CONFIRMING_LIMITS, shape)), None)
        return None if fitting is None or constants.is_no_larger({**self.written, **fitting}, derived) else fitting

    def _is_within(self, limits: Cost, shape: Constants) -> bool:
        return cost_of(self.tree, {**self.written, **shape}).is_within(limits)

    def at(self, step: Reduction) -> Constants | None:
        """Returns the constants that differ at a step, or None if the relations between numbers cannot be kept."""
        reduced = _Relations.of(self).reduced(step)
        if reduced is None:
            return None
        shape = {name: _mapped(value, self.kind(name), reduced) for name, value in self.assigned.items()}
        shape = {name: resolved(value, shape) for name, value in shape.items()}
        written = self.written
        return {name: value for name, value in shape.items() if value != written[name]}


def _mapped(value: Any, kind: SizeKind, reduced: Mapping[Number, int]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_mapped(each, kind, reduced) for each in value)
    return value if isinstance(value, str) else reduced[value, kind]


MOST_TRIED = 5
"""The most divisors of a number of heads or groups that are tried in its place."""
PARTS = (SizeKind.HEADS, SizeKind.GROUPS)
"""The kinds of numbers into which sizes are divided."""


@dataclass(frozen=True)
class _Relations:
    """The numbers of a file, and what divides what."""

    numbers: tuple[Number, ...]
    """In ascending order."""
    divided: Mapping[int, tuple[Number, ...]]
    """For each size the numbers of heads and groups that divide it."""

    @classmethod
    def of(cls, file: _File) -> _Relations:
        numbers = {(number, file.kind(name)) for name, value in file.assigned.items() for number in leaves(value)}
        parts = [each for each in numbers if each[1] in PARTS and each[0] > 1]
        divided = {number: tuple(part for part in parts if number % part[0] == 0)
                   for number, kind in numbers if kind is SizeKind.SIZE and number > SMALL}
        return cls(tuple(sorted(numbers, key=lambda each: (each[0], each[1].name))), divided)

    def reduced(self, step: Reduction) -> dict[Number, int] | None:
        """Returns the numbers at a step, with the fewest heads and groups for which all relations can be kept."""
        parts = [each for each in self.numbers if each[1] in PARTS]
        for chosen in itertools.product(*(self._fewer(part, step) for part in parts)):
            found = self._with(dict(zip(parts, chosen, strict=True)), step)
            if found is not None:
                return found
        return None

    def _fewer(self, part: Number, step: Reduction) -> list[int]:
        """Returns the numbers that may replace a number of heads or groups, from the smallest."""
        number, _ = part
        is_related = any(part in parts for parts in self.divided.values())
        least = step.parts if is_related else max(SMALL, step.floor)
        return [*[each for each in _divisors(number)[:-1] if each >= least][:MOST_TRIED], number]

    def _with(self, parts: dict[Number, int], step: Reduction) -> dict[Number, int] | None:
        """Returns the numbers at a step with these numbers of heads and groups, or None if a relation breaks."""
        reduced = dict(parts)
        apart = bool(parts) or step.grid is not None
        found: dict[bool, dict[int, int]] = {False: {}, True: {}}
        for number, kind in self.numbers:
            if kind is SizeKind.BATCH:
                reduced[number, kind] = _batch(number, step)
            elif kind is SizeKind.HEAD_SIZE or (kind is SizeKind.GROUP_SIZE and step.group == math.inf):
                reduced[number, kind] = number
            elif kind not in PARTS:
                in_grid = apart and kind is SizeKind.GRID
                known = found[in_grid]
                largest = max(known.values(), default=0)
                size = known[number] if number in known else self._size(
                    number, reduced, step, in_grid=in_grid, apart=apart, largest=largest)
                if size is None:
                    return None
                reduced[number, kind] = known[number] = size
        others = [(one, other) for one in parts for other in self._divisors_of(one[0], False, True) if other != one]
        return reduced if all(reduced[one] % reduced[other] == 0 for one, other in others) else None

    def _size(
        self, number: int, reduced: Mapping[Number, int], step: Reduction, *, in_grid: bool, apart: bool, largest: int
    ) -> int | None:
        factor = math.lcm(*(reduced[each] for each in self._divisors_of(number, in_grid, apart)))
        if not in_grid:
            return _size(number, factor, {part: reduced[part] for part in self.divided.get(number, ())}, step, largest)
        if step.grid is None:
            return _size(number, factor, {}, step, largest)
        return _size(number, factor, {}, replace(step, floor=step.grid), largest, small=int(min(SMALL, step.grid)),
                     warp=WARP if step.grid >= WARP else 1)

    def _divisors_of(self, number: int, in_grid: bool, apart: bool) -> list[Number]:
        """Returns the smaller numbers that divide one. If lengths are apart from other sizes, what the two have in
        common is a coincidence, except for small numbers."""
        return [(each, kind) for each, kind in self.numbers
                if 1 < each < number and number % each == 0 and kind is not SizeKind.WINDOW
                and (not apart or each <= SMALL or kind is SizeKind.BATCH or (kind is SizeKind.GRID) == in_grid)]


def _size(
    number: int, factor: int, parts: Mapping[Number, int], step: Reduction, largest: int, *, small: int = SMALL,
    warp: int = WARP,
) -> int | None:
    """Returns the smallest size at a step that is a multiple of `factor` and not below the `largest` so far. None if
    there is none.

    `parts` are the numbers of heads or groups into which it is divided, with what replaces them. It keeps the size of a
    head or group, or at least `step.group` elements of a group. Numbers up to `small` are kept, and multiples of `warp`
    stay multiples.
    """
    kept, floor = set(), step.floor
    for (part, kind), fewer in parts.items():
        size = number // part
        if kind is SizeKind.HEADS or size <= step.group:
            kept.add(fewer * size)
        else:
            floor = max(floor, fewer * step.group)
    if number <= max(small, floor):
        return number if kept <= {number} else None
    least = max(int(floor), largest + 1 if largest < step.distinct else largest)
    first = -(-least // factor) * factor
    fitting: Iterable[int] = range(first, min(number, first + factor * WARP) + 1, factor)
    if kept:
        fitting = [size for size in kept if len(kept) == 1 and size >= least and size % factor == 0]
    return next((size for size in fitting if (size - number) % step.remainder == 0
                 and (size % warp == 0) == (number % warp == 0)), None)


def _batch(number: int, step: Reduction) -> int:
    """Returns the smallest divisor of a batch size at a step."""
    if number <= step.batch:
        return number
    factor = WARP if number % WARP == 0 and step.batch >= WARP else 1
    return min(factor * each for each in _divisors(number // factor) if factor * each >= step.batch)


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
