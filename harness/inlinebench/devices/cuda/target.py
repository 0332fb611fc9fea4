"""Builds for GPUs: recipes with nvcc, and the libraries of the clock and the tracer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from inlinebench.builds.request import BuildRequest, NoRuntimeLibraries, RuntimeLibraries
from inlinebench.compile import architecture
from inlinebench.compile.cache import Cache
from inlinebench.compile.recipe import Recipe
from inlinebench.compile.target import Build
from inlinebench.devices.cuda import driver
from inlinebench.devices.cuda.recipe import clock_recipe, precompiled_kernel_recipe, recipe, trace_recipe

_HERE = Path(__file__).resolve().parent
CLOCK_SOURCE, TRACE_SOURCE = _HERE / "gpu_clock.cu", _HERE / "gpu_trace.cpp"


class GpuTarget:
    """GPUs. `architectures` are their compute capabilities as nvcc names them, in any order."""

    def __init__(self, architectures: Sequence[str]) -> None:
        self.architectures = architecture.in_order(architectures)

    def recipe(
        self, request: BuildRequest, slim: bool, precompiled: Path, libraries: Callable[[], RuntimeLibraries]
    ) -> Recipe:
        """Returns the recipe for a request. It needs none of the runtime libraries."""
        return recipe(request, self.architectures, slim, precompiled)

    def precompiled_recipe(self) -> Recipe:
        """Returns the recipe for the precompiled headers."""
        return precompiled_kernel_recipe(self.architectures)

    def runtime_libraries(self, cache: Cache, build: Build) -> RuntimeLibraries:
        """Returns the clock and, if CUPTI's headers exist, the tracer. Looks both up at each call."""
        outcome = build(lambda: clock_recipe(CLOCK_SOURCE, self.architectures))
        if outcome.library is None:
            raise NoRuntimeLibraries(f"could not build the GPU clock: {outcome.reason}")
        # Optional, because not every toolkit has CUPTI's headers. PyTorch's profiler replaces it, but starts slowly.
        trace = build(lambda: trace_recipe(TRACE_SOURCE))
        for library in filter(None, (outcome.library, trace.library)):
            cache.hold(library)
        return RuntimeLibraries(clock=outcome.library, trace=trace.library)


target = GpuTarget


def installed(index: int) -> tuple[str, ...]:
    """Returns the compute capability of a GPU of this machine. Raises NoGpu."""
    return (driver.ask(index),)
