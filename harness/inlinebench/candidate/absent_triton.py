"""Takes the place of Triton where it is not installed, so that a file with CUDA sources beside Triton functions runs.

Everything that such a file does with Triton while it is imported yields an object that stands for the result. A call of
a Triton function raises `TritonIsAbsent`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from inlinebench.wire.lacking_triton import LACKS_TRITON, TRITON


class TritonIsAbsent(RuntimeError):
    """A Triton function was called."""

    def __init__(self) -> None:
        super().__init__(LACKS_TRITON)


class _Absent:
    """Stands for something of Triton's: a decorator, a type, a configuration or a decorated function."""

    def __init__(self, decorates: bool = False) -> None:
        self._decorates = decorates

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._decorates:  # such as `kernel.run`
            raise TritonIsAbsent()
        return _Absent()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._decorates:
            raise TritonIsAbsent()
        return _Absent(decorates=len(arguments) == 1 and not named and callable(arguments[0]))

    def __getitem__(self, grid: Any) -> Any:
        raise TritonIsAbsent()


def _cdiv(x: int, y: int) -> int:
    return -(-x // y)


def _next_power_of_2(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


class _Module(types.ModuleType):
    """A module of Triton's. `cdiv` and `next_power_of_2` work, because the host computes grids of any kernel with
    them."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 - of a module, which has no values of its own
    __version__ = "0"
    cdiv, next_power_of_2 = staticmethod(_cdiv), staticmethod(_next_power_of_2)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent()


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == TRITON else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: a module of Triton's has no code here."""


@contextmanager
def absent_triton() -> Iterator[None]:
    """Lets imports of Triton succeed. Afterwards torch does not find it, which would use it."""
    finder = _Finder()
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == TRITON]:
            del sys.modules[name]
