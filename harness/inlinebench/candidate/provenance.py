"""Finds where the kernels of this process come from, where only this process knows.

The judge finds the kernels of the libraries that it had built by itself. Here are the functions that Triton compiled,
the library that launches each kernel, and whether the solution uses a profiler, which empties the harness's own.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from torch.autograd import profiler as autograd_profiler

from inlinebench.candidate.files import Files
from inlinebench.devices.cuda.tracer import CuptiTracer
from inlinebench.timing.trace import LONGEST_NAME, MOST_KERNELS, Launch, Tracer

Value = TypeVar("Value")

CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
"""Variables with folders in which Triton and TorchInductor build libraries that launch kernels."""


class Provenance:
    """Collects during calls what the judge asks for after them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._caches = [Path(os.environ[name]) for name in CACHES if name in os.environ]
        self._profiles_itself = False
        self._launches: list[Launch] = []

    def trace_launches(self, tracer: Tracer, work: Callable[[], Value]) -> Value:
        """Runs `work` and keeps which library launches each kernel. Without CUPTI it keeps nothing."""
        if not isinstance(tracer, CuptiTracer):
            return work()
        value, self._launches = tracer.launches(work)
        return value

    @contextmanager
    def watching_profilers(self) -> Iterator[None]:
        """Notes whether PyTorch's profiler is started in the block."""
        original = autograd_profiler._enable_profiler  # type: ignore[attr-defined, unused-ignore]

        def enable(*arguments: Any, **named: Any) -> Any:
            self._profiles_itself = True
            return original(*arguments, **named)

        autograd_profiler._enable_profiler = enable  # type: ignore[attr-defined, unused-ignore]
        try:
            yield
        finally:
            autograd_profiler._enable_profiler = original  # type: ignore[attr-defined, unused-ignore]

    def to_json(self) -> dict[str, Any]:
        """Returns the fields of the reply to `provenance`."""
        return {
            "triton": triton_kernels(self._files), "profiles_itself": self._profiles_itself,
            "launches": [[launch.kernel, launch.library] for launch in self._launches],
            "libraries": sorted({launch.library for launch in self._launches if self._brought(Path(launch.library))}),
        }

    def _brought(self, library: Path) -> bool:
        """Whether the solution has brought a library, or has built it without the harness, by calling nvcc itself."""
        return self._files.belongs(library) and not any(library.is_relative_to(cache) for cache in self._caches)


def triton_kernels(files: Files) -> list[str]:
    """Returns the names of the kernels that Triton has compiled from functions of the solution's files, at most 1,000.
    """
    compiler = sys.modules.get("triton.compiler.compiler")
    if compiler is None:
        return []  # nothing has imported Triton
    gc.unfreeze()  # frozen objects are not found
    compiled = [each for each in gc.get_objects() if issubclass(type(each), compiler.CompiledKernel)]
    gc.freeze()
    return sorted({kernel.name[:LONGEST_NAME] for kernel in compiled if _is_own(kernel, files)})[:MOST_KERNELS]


def _is_own(kernel: Any, files: Files) -> bool:
    """Whether the source of a compiled kernel is a function in a file of the solution's.

    TorchInductor writes its functions to files as well, in the scratch folder, but as modules of its own.
    """
    if not hasattr(kernel.src, "fn"):
        return False  # compiled from Triton's intermediate representation
    function = kernel.src.fn.fn
    return not function.__module__.startswith("torch.") and files.belongs(Path(function.__code__.co_filename))
