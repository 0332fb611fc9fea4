"""The recipe for a machine without a GPU: CUDA sources are translated and compiled by the C++ compiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.build import cuda_on_cpu, toolchain
from harness.build.cuda_on_cpu import Unsupported
from harness.build.recipe import (
    CXX,
    IN,
    OUT,
    PLACES,
    SLIM,
    TORCH_INCLUDES,
    Expanded,
    Recipe,
    command,
    common_flags,
    common_places,
    cpp_source,
    cuda_source,
    key_of,
    link_flags,
    places_file,
    split,
)
from harness.build.request import BuildRequest
from harness.build.slim import SLIM_DIR

OPTIMIZATION = "-O2"
"""For every translated source, whatever the solution asks nvcc for: no time is claimed on the CPU."""


class CannotTranslate(Exception):
    """The source can't run on the CPU. `source` and `line` (from 1) say where; the text says what and why."""

    def __init__(self, source: str, line: int, message: str) -> None:
        super().__init__(message)
        self.source, self.line = source, line


def cpu_recipe(request: BuildRequest, runtime: Path | None, slim: bool) -> Recipe:
    """What to write and run for a request; `runtime` is the library that runs kernels on the CPU, if it has any.

    A request without CUDA is built as it is: `is_cpu()` in it means what it says. Raises MissingTool, BadRequest or
    CannotTranslate.
    """
    library = f"{request.name}.so"
    cpp, flags = request.cpp_sources, link_flags(request, cuda=False)
    folders = [*([SLIM] if slim else []), *TORCH_INCLUDES]
    files, places = {}, common_places()
    if request.uses_cuda:
        assert runtime is not None
        places |= {"cuda_on_cpu": str(cuda_on_cpu.INCLUDE_DIR), "runtime": str(runtime.parent)}
        cpp = _translated(request.cpp_sources, cuda=False)
        files["cuda.cpp"] = cuda_source(request, _translated(request.cuda_sources, cuda=True), slim)
        folders.insert(0, Expanded("$cuda_on_cpu"))
        flags += map(Expanded, cuda_on_cpu.link_flags(Path("$runtime") / runtime.name))
    files["main.cpp"] = cpp_source(request, cpp, slim)
    files["build.ninja"] = _ninja_file(request, library, list(files), folders, flags)
    headers = (SLIM_DIR, *([cuda_on_cpu.INCLUDE_DIR] if request.uses_cuda else []))
    return Recipe({**files, PLACES: places_file(places)}, library, key_of(files, [toolchain.cxx()], headers))


def _translated(sources: Sequence[str], *, cuda: bool) -> tuple[str, ...]:
    translated = []
    for source in sources:
        try:
            translated.append(cuda_on_cpu.translate(source, cuda=cuda))
        except Unsupported as error:
            raise CannotTranslate(source, error.line, str(error)) from error
    return tuple(translated)


def _cpp_flags(request: BuildRequest) -> list[str]:
    """A solution's own flags; where its work is in kernels, its bindings need no optimisation."""
    own = split(request.extra_cflags)
    return [*(flag for flag in own if not flag.startswith("-O")), "-O0"] if request.uses_cuda else own


def _ninja_file(
    request: BuildRequest, library: str, sources: Sequence[str], folders: Sequence[str], link: Sequence[str]
) -> str:
    common = [CXX, *common_flags(request, folders), "-fPIC", toolchain.torch().cxx_standard]
    rules = {
        "main.cpp": command([*common, *_cpp_flags(request), "-c", IN, "-o", OUT]),
        "cuda.cpp": command([*common, *cuda_on_cpu.host_flags(split(request.extra_cuda_cflags)),
                             *cuda_on_cpu.SOURCE_FLAGS, OPTIMIZATION, "-c", IN, "-o", OUT]),
    }
    lines = [f"include {PLACES}"]
    for source in sources:
        stem = source.removesuffix(".cpp")
        lines += [f"rule {stem}", f"  command = {rules[source]}", "", f"build {stem}.o: {stem} {source}", ""]
    objects = " ".join(source.removesuffix(".cpp") + ".o" for source in sources)
    linking = command([CXX, "-shared", IN, *link, "-o", OUT])
    return "\n".join([*lines, "rule link", f"  command = {linking}", "", f"build {library}: link {objects}", ""])
