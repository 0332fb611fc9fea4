"""What a build service builds for: the interface that `inlinebench.devices` implements for each kind of device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from inlinebench.builds.request import BuildOutcome, BuildRequest, RuntimeLibraries
from inlinebench.compile.cache import Cache
from inlinebench.compile.recipe import Recipe

Build = Callable[[Callable[[], Recipe]], BuildOutcome]
"""Builds a recipe, or finds its library in the cache. A recipe that raises MissingTool or BadRequest is a failure."""


class Target(Protocol):
    """A kind of device that one build service builds for. Thread-safe."""

    @property
    def architectures(self) -> Sequence[str]:
        """The compute capabilities of GPUs, as nvcc names them. Empty for the CPU."""

    def recipe(
        self, request: BuildRequest, slim: bool, precompiled: Path, libraries: Callable[[], RuntimeLibraries]
    ) -> Recipe:
        """Returns the recipe for a request, with slim headers or torch's full ones.

        `precompiled` is the folder of precompiled headers. `libraries` returns the runtime libraries, and builds them
        if necessary. Raises MissingTool, BadRequest, CannotTranslate or NoRuntimeLibraries.
        """

    def precompiled_recipe(self) -> Recipe:
        """Returns the recipe for the precompiled headers that `recipe` uses. Raises MissingTool."""

    def runtime_libraries(self, cache: Cache, build: Build) -> RuntimeLibraries:
        """Returns the harness's own libraries for the device, held in the cache. Builds them if necessary.

        Raises NoRuntimeLibraries.
        """


class CannotTranslate(Exception):
    """The source cannot run on the CPU, or nowhere if it is `malformed`. `source` and `line` (from 1) say where; the
    message says what and why."""

    def __init__(self, source: str, line: int, message: str, malformed: bool) -> None:
        super().__init__(message)
        self.source, self.line, self.malformed = source, line, malformed
