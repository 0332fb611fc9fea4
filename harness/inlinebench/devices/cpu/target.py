"""Builds for the CPU: translated sources, and the libraries that run kernels and guard tensors' memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from cuda_on_cpu import allocator_library, runtime_library
from inlinebench.builds.request import BuildRequest, NoRuntimeLibraries, RuntimeLibraries
from inlinebench.compile import toolchain
from inlinebench.compile.cache import CPU_LIBRARIES, Cache
from inlinebench.compile.recipe import Recipe
from inlinebench.compile.target import Build
from inlinebench.devices.cpu.recipe import cpu_recipe, precompiled_recipe


class CpuTarget:
    """The CPU of this machine. Keeps the runtime libraries once they are built, so that a run never mixes versions."""

    architectures: Sequence[str] = ()

    def __init__(self) -> None:
        self._libraries: tuple[Path, Path] | None = None
        self._lock = Lock()

    def recipe(
        self, request: BuildRequest, slim: bool, precompiled: Path, libraries: Callable[[], RuntimeLibraries]
    ) -> Recipe:
        """Returns the recipe for a request. One that uses CUDA is linked with the runtime library."""
        return cpu_recipe(request, libraries().runtime if request.uses_cuda else None, slim, precompiled)

    def precompiled_recipe(self) -> Recipe:
        """Returns the recipe for the precompiled headers."""
        return precompiled_recipe()

    def runtime_libraries(self, cache: Cache, build: Build) -> RuntimeLibraries:
        """Returns the runtime and the allocator. Builds them at the first call, or if they are gone."""
        try:
            with self._lock:
                if self._libraries is None:
                    self._libraries = _built(cache)
                if not all([cache.hold(library) for library in self._libraries]):
                    self._libraries = _built(cache)  # another process pruned them before they were held
                runtime, allocator = self._libraries
        except (toolchain.MissingTool, RuntimeError, OSError) as error:
            raise NoRuntimeLibraries(f"could not build the library that runs kernels on the CPU: {error}") from error
        return RuntimeLibraries(runtime=runtime, allocator=allocator)


def _built(cache: Cache) -> tuple[Path, Path]:
    folder, torch = cache.room(CPU_LIBRARIES), toolchain.torch()
    standard = torch.cxx_standard.removeprefix("-std=")
    runtime = runtime_library(folder, toolchain.cxx())
    return runtime, allocator_library(folder, torch.include_dirs, torch.library_dir, toolchain.cxx(), std=standard)


def target(architectures: Sequence[str]) -> CpuTarget:
    """Returns what builds for the CPU, which has no architectures to choose from."""
    return CpuTarget()


def installed(index: int) -> tuple[str, ...]:
    """Returns nothing: the compiler chooses."""
    return ()
