"""The recipe for machines without a GPU: CUDA sources are translated and compiled by the C++ compiler."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import cuda_on_cpu
from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.linking import add_link
from inlinebench.compile.ninja_syntax import (
    CXX,
    IN,
    OUT,
    PRECOMPILED_INCLUDE,
    SLIM,
    TORCH_INCLUDES,
    Expanded,
    Steps,
    command,
    split,
)
from inlinebench.compile.precompiled import BINDING, KERNEL, PRECOMPILED_DIR
from inlinebench.compile.recipe import (
    FEWER_ERRORS,
    NVCC_FLAGS,
    Recipe,
    common_flags,
    common_places,
    cpp_source,
    cuda_source,
    finished,
    fits_precompiled,
    folder_flags,
)
from inlinebench.compile.slim import SLIM_DIR
from inlinebench.compile.target import CannotTranslate

_BINDING_FLAGS = ["-O0"]
_HEADERS = (SLIM_DIR, cuda_on_cpu.INCLUDE_DIR, PRECOMPILED_DIR)
CUDA_SUFFIXES = (".cu", ".cuh")
OPTIMIZATION = "-O2"
"""Used for every translated source instead of the solution's level, because CPU times are not reported."""


def cpu_recipe(request: BuildRequest, runtime: Path | None, slim: bool, precompiled: Path = PRECOMPILED_DIR) -> Recipe:
    """Returns the recipe for a request. `runtime` is the library that runs kernels on the CPU, needed if the request
    uses CUDA. `precompiled` is the folder of precompiled headers, if there are any.

    A request without CUDA is built unchanged, so `is_cpu()` in it keeps its meaning. Raises MissingTool, BadRequest or
    CannotTranslate.
    """
    library = f"{request.name}.so"
    cpp, runtime_flags = request.cpp_sources, list[str]()
    folders = [*([SLIM] if slim else []), *TORCH_INCLUDES]
    files, places = {}, common_places()
    if request.uses_cuda:
        assert runtime is not None
        places |= {"cuda_on_cpu": str(cuda_on_cpu.INCLUDE_DIR), "runtime": str(runtime.parent),
                   "precompiled": str(precompiled), "prefix": str(PRECOMPILED_DIR)}
        cpp = _translated(request.cpp_sources, cuda=False)
        files["cuda.cpp"] = cuda_source(request, _translated(request.cuda_sources, cuda=True), slim)
        folders.insert(0, Expanded("$cuda_on_cpu"))
        runtime_flags += map(Expanded, cuda_on_cpu.link_flags(Path("$runtime") / runtime.name))
    files["main.cpp"] = cpp_source(request, cpp, slim)
    steps = _steps(request, library, list(files), folders, runtime_flags, slim=slim)
    headers = _HEADERS if request.uses_cuda else (SLIM_DIR,)
    return finished(library, {**files, **_translated_headers(request)}, steps, places, compilers=[toolchain.cxx()],
                    headers=headers, request=request)


def precompiled_recipe() -> Recipe:
    """Returns the recipe for the precompiled headers, with the flags of `cpu_recipe`. `library` is the last of its
    files. Raises MissingTool."""
    common = [CXX, *folder_flags([Expanded("$cuda_on_cpu"), SLIM, *TORCH_INCLUDES]), "-fPIC",
              FEWER_ERRORS, toolchain.torch().cxx_standard]
    own = {BINDING: _BINDING_FLAGS, KERNEL: _kernel_flags([])}
    steps = Steps()
    for number, (name, flags) in enumerate(own.items()):
        compile_header = command([*common, *flags, "-x", "c++-header", IN, "-o", OUT])
        steps.add(f"header{number}", compile_header, f"{name}.gch", f"$prefix/{name}")
    places = {**common_places(), "cuda_on_cpu": str(cuda_on_cpu.INCLUDE_DIR), "prefix": str(PRECOMPILED_DIR)}
    return finished(f"{KERNEL}.gch", {}, steps, places, compilers=[toolchain.cxx()], headers=_HEADERS)


def _translated(sources: Sequence[str], *, cuda: bool) -> tuple[str, ...]:
    translated = []
    for source in sources:
        try:
            translated.append(cuda_on_cpu.translate(source, cuda=cuda))
        except cuda_on_cpu.Unsupported as error:
            malformed = isinstance(error, cuda_on_cpu.Malformed)
            raise CannotTranslate(source, error.line, str(error), malformed) from error
    return tuple(translated)


def _translated_headers(request: BuildRequest) -> dict[str, str]:
    """Returns the headers of a request. Those of CUDA, by their suffix, are translated as its sources are."""
    headers = dict(request.headers)
    for name, text in headers.items():
        if not request.uses_cuda or PurePosixPath(name).suffix not in CUDA_SUFFIXES:
            continue
        try:
            headers[name] = cuda_on_cpu.translate(text, cuda=True)
        except cuda_on_cpu.Unsupported as error:
            own_line = error.line - 1  # the first line is a #line directive
            message = str(error).replace(f"(line {error.line})", f"({PurePosixPath(name).name}, line {own_line})", 1)
            malformed = isinstance(error, cuda_on_cpu.Malformed)
            raise CannotTranslate(text, error.line, message, malformed) from error
    return headers


def _cpp_flags(request: BuildRequest) -> list[str]:
    """Returns the solution's flags. If its work is in kernels, its bindings are not optimized."""
    own = split(request.extra_cflags)
    return [*(flag for flag in own if not flag.startswith("-O")), *_BINDING_FLAGS] if request.uses_cuda else own


def _kernel_flags(own: Sequence[str]) -> list[str]:
    fixed = [*cuda_on_cpu.SOURCE_FLAGS, *cuda_on_cpu.RACE_FLAGS, OPTIMIZATION]
    return [*cuda_on_cpu.host_flags([*NVCC_FLAGS, *own]), *fixed]


def _steps(
    request: BuildRequest, library: str, sources: Sequence[str], folders: Sequence[str], runtime_flags: Sequence[str],
    *, slim: bool,
) -> Steps:
    precompiled = slim and request.uses_cuda and not request.no_implicit_headers
    common = [CXX, *common_flags(request, folders), "-fPIC", FEWER_ERRORS, toolchain.torch().cxx_standard]
    given = {"main.cpp": request.extra_cflags, "cuda.cpp": request.extra_cuda_cflags}
    headers = {"main.cpp": BINDING, "cuda.cpp": KERNEL}
    first = {name: [*PRECOMPILED_INCLUDE, headers[name]] for name, flags in given.items()
             if precompiled and fits_precompiled(flags)}
    own = {"main.cpp": _cpp_flags(request), "cuda.cpp": _kernel_flags(split(request.extra_cuda_cflags))}
    rules = {name: command([*common, *first.get(name, []), *flags, "-c", IN, "-o", OUT]) for name, flags in own.items()}
    steps, stems = Steps(), [source.removesuffix(".cpp") for source in sources]
    for stem, source in zip(stems, sources, strict=True):
        steps.add(stem, rules[source], f"{stem}.o", source)
    objects = [f"{stem}.o" for stem in stems]
    add_link(steps, _without_cuda_libraries(request), library, objects, runtime_flags, cuda=False)
    return steps


def _without_cuda_libraries(request: BuildRequest) -> BuildRequest:
    if not request.uses_cuda:
        return request
    kept = cuda_on_cpu.host_link_flags(split(request.extra_ldflags))
    return replace(request, extra_ldflags=tuple(map(shlex.quote, kept)))
