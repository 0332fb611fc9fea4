"""Runs a reference without one of its operators."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ZEROS = -1
"""Stands for zeros where the position of an argument is expected."""
NO_WORK = frozenset({
    "clone", "detach", "copy", "_to_copy", "lift_fresh", "contiguous", "_unsafe_view", "fill", "zero", "set",
    "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "new_empty_strided", "resize", "bernoulli", "dropout", "native_dropout",
    "tril", "triu",
})
"""Operators that only make, copy or draw values, or say which part of a matrix is zero."""

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Removal:
    """One way to leave out an operator of `forward`. In a loop it is left out each time."""

    site: int
    """The number of its place in `forward`, in the order of the first call."""
    argument: int
    """The position of the argument that takes the place of its result, or `ZEROS`."""
    operator: str
    """The operator's name."""
    line: int
    """The line of the problem's file that calls it."""

    @property
    def instead(self) -> str:
        """What takes the place of the result."""
        return "zeros" if self.argument == ZEROS else "its input"


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Numbers the operators that a problem's file calls, and leaves one out if `removal` is given.

    Views, copies and operators that make tensors are not counted: they are not the work of a kernel.
    """

    def __init__(self, path: Path, removal: Removal | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._path, self._removal = str(path), removal
        self._sites: dict[Place, int] = {}
        self._found: dict[tuple[int, int], Removal] = {}
        self.names: set[str] = set()
        """The names of all operators that were called."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise PyTorch imports TorchDynamo, which takes seconds

    @property
    def removals(self) -> tuple[Removal, ...]:
        """The ways to leave out one of the operators that were called, in the order of the calls."""
        return tuple(self._found.values())

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        in_place = bool(func._schema.is_mutable)
        self.names.add(name)
        place = None if _makes_a_view(func) or name.removesuffix("_") in NO_WORK else self._place(name)
        if place is None or (in_place and not (args and name.endswith("_"))):
            return func(*args, **kwargs)
        where, line = place
        site = self._sites.setdefault(where, len(self._sites))
        if in_place:
            if args[0].is_floating_point():
                self._found.setdefault((site, 0), Removal(site, 0, name, line))
            return args[0] if self._leaves_out(site) else func(*args, **kwargs)
        result = func(*args, **kwargs)
        first = result[0] if isinstance(result, tuple | list) and result else result
        takes_tensors = any(isinstance(each, torch.Tensor) for each in tree_leaves((args, kwargs)))
        if not takes_tensors or not isinstance(first, torch.Tensor) or not first.is_floating_point():
            return result
        for argument in (*_alike(args, first), ZEROS):
            self._found.setdefault((site, argument), Removal(site, argument, name, line))
        if self._removal is None or not self._leaves_out(site):
            return result
        argument = self._removal.argument
        other = torch.zeros_like(first) if argument == ZEROS else args[argument].reshape(first.shape).clone()
        return other if first is result else (other, *result[1:])

    def _leaves_out(self, site: int) -> bool:
        return self._removal is not None and self._removal.site == site

    def _place(self, name: str) -> tuple[Place, int] | None:
        """Returns the place of the call and its line in the problem's file. None if the file does not call it."""
        place: list[Any] = [name]
        line = 0
        for frame in _frames():
            place.append((id(frame.f_code), frame.f_lasti, _module(frame)))
            if frame.f_code.co_filename == self._path:
                line = line or frame.f_lineno
                if frame.f_code.co_name == "forward":
                    return tuple(place), line
        return None


def _frames() -> Iterator[FrameType]:
    """Yields the frames of the callers, from the inside out."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> int:
    """Returns which module a frame is a method of, so that equal layers of one container are told apart."""
    owner = frame.f_locals.get("self")
    return id(owner) if isinstance(owner, torch.nn.Module) else 0


def _alike(args: Sequence[Any], result: torch.Tensor) -> Iterator[int]:
    """Yields the positions of the arguments that could be the result: of the same dtype, and the same shape but for
    dimensions of size 1."""
    wanted = [size for size in result.shape if size != 1]
    for position, value in enumerate(args):
        if (isinstance(value, torch.Tensor) and value.dtype == result.dtype
                and [size for size in value.shape if size != 1] == wanted):
            yield position


def _makes_a_view(func: Any) -> bool:
    returned = func._schema.returns
    return any(each.alias_info is not None and not each.alias_info.is_write for each in returned)
