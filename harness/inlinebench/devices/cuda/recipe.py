"""Recipes for GPUs: C++ and CUDA sources, compiled as torch's own builds do; and the harness's clock and tracer."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import architecture, toolchain
from inlinebench.compile.linking import add_link
from inlinebench.compile.ninja_syntax import (
    CXX,
    HOST,
    IN,
    NVCC,
    OUT,
    PRECOMPILED_INCLUDE,
    SLIM,
    THRUST,
    TORCH_INCLUDES,
    Expanded,
    Steps,
    command,
    split,
)
from inlinebench.compile.precompiled import BINDING, HOST_COMPILER, PRECOMPILED_DIR
from inlinebench.compile.recipe import (
    FEWER_ERRORS,
    FLAG_VARIABLES,
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
from inlinebench.compile.slim import SLIM_DIR, THRUST_DIR, needs_thrust

_HEADERS = (SLIM_DIR, THRUST_DIR, PRECOMPILED_DIR)
_NOTHING = "int inlinebench_nothing;"
_OPTIMIZATIONS = {"plain": (), "O3": ("-O3",)}
"""The most common optimization levels. Precompiled headers are made for each, because their text depends on it."""


def recipe(
    request: BuildRequest, architectures: Sequence[str], slim: bool, precompiled: Path = PRECOMPILED_DIR
) -> Recipe:
    """Returns the recipe for a request, with slim headers or torch's full ones. `precompiled` is the folder of
    precompiled headers, if there are any.

    Raises MissingTool, or BadRequest for flags that a ninja file cannot contain.
    """
    library = f"{request.name}.so"
    files = {**request.headers, "main.cpp": cpp_source(request, request.cpp_sources, slim)}
    if request.cuda_sources:
        files["cuda.cu"] = cuda_source(request, request.cuda_sources, slim)
    steps = _steps(request, library, architectures, slim)
    return finished(library, files, steps, _places(request, precompiled), compilers=_compilers(request),
                    headers=_HEADERS, request=request)


def precompiled_kernel_recipe(architectures: Sequence[str]) -> Recipe:
    """Returns the recipe for the precompiled headers that `recipe` uses, with the same flags. Raises MissingTool."""
    common = folder_flags([SLIM, *TORCH_INCLUDES, Expanded("$cuda/include")])
    compile_binding = command([CXX, *common, "-fPIC", toolchain.torch().cxx_standard, "-x", "c++-header", IN, "-o",
                               OUT])
    steps = Steps()
    steps.add("binding", compile_binding, f"{BINDING}.gch", f"$prefix/{BINDING}")
    own = f"./{HOST_COMPILER}"
    request = BuildRequest("inlinebench_prefix", (), (_NOTHING,))
    for name, flags in _OPTIMIZATIONS.items() if _leaves_host_compiler(request) else ():
        request = replace(request, extra_cuda_cflags=flags)
        compile_kernel = _nvcc_command(request, ["-isystem", THRUST, *common], architectures, ["-ccbin", own])
        steps.add(name, f"chmod +x {own} && INLINEBENCH_MAKE_PREFIX={name} {compile_kernel} && "
                  f"test -e {name}/prefix.h.gch", f"{name}.o", "cuda.cu")
    files = {"cuda.cu": cuda_source(request, request.cuda_sources, slim=True),
             HOST_COMPILER: (PRECOMPILED_DIR / HOST_COMPILER).read_text(encoding="utf-8")}
    places = _places(request, PRECOMPILED_DIR)
    return finished(f"{BINDING}.gch", files, steps, places, compilers=_compilers(request), headers=_HEADERS)


def clock_recipe(source: Path, architectures: Sequence[str]) -> Recipe:
    """Returns the recipe for the GPU clock: one CUDA file that does not use torch. Raises MissingTool."""
    flags = ["-O2", "-shared", "-Xcompiler", "-fPIC", *_gencode(architectures)]
    steps, nvcc = Steps(), toolchain.nvcc()
    steps.add("nvcc", command([NVCC, *flags, "-o", OUT, IN]), "clock.so", "clock.cu")
    files = {"clock.cu": source.read_text(encoding="utf-8")}
    return finished("clock.so", files, steps, {"nvcc": nvcc}, compilers=[nvcc])


def trace_recipe(source: Path) -> Recipe:
    """Returns the recipe for the CUPTI tracer: one C++ file with the toolkit's headers. Raises MissingTool."""
    folders = [Expanded("-I$cuda/include"), Expanded("-I$cuda/extras/CUPTI/include")]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *folders]
    steps, files = Steps(), {"trace.cpp": source.read_text(encoding="utf-8")}
    steps.add("cxx", command([CXX, *flags, IN, "-o", OUT, "-ldl"]), "trace.so", "trace.cpp")
    places = {"cxx": toolchain.cxx(), "cuda": str(toolchain.cuda_home())}
    compilers = [toolchain.cxx(), toolchain.nvcc()]  # nvcc's version stands for the toolkit and its headers
    return finished("trace.so", files, steps, places, compilers=compilers)


def _steps(request: BuildRequest, library: str, architectures: Sequence[str], slim: bool) -> Steps:
    folders = [*([SLIM] if slim else []), *TORCH_INCLUDES, *([Expanded("$cuda/include")] if request.uses_cuda else [])]
    common = common_flags(request, folders)
    precompiled = slim and request.uses_cuda and not request.no_implicit_headers
    first = [*PRECOMPILED_INCLUDE, BINDING] if precompiled and fits_precompiled(request.extra_cflags) else []
    compile_cxx = command([CXX, *common, *first, "-fPIC", FEWER_ERRORS, toolchain.torch().cxx_standard,
                           *split(request.extra_cflags), "-c", IN, "-o", OUT])
    steps, objects = Steps(), ["main.o"]
    steps.add("cxx", compile_cxx, "main.o", "main.cpp")
    if request.cuda_sources:
        without_thrust = slim and not needs_thrust(request.texts)
        common = common_flags(request, [*([THRUST] if without_thrust else []), *folders])
        may_be_precompiled = _leaves_host_compiler(request) and fits_precompiled(request.extra_cuda_cflags)
        host = HOST if precompiled and may_be_precompiled else ()
        steps.add("nvcc", _nvcc_command(request, common, architectures, host), "cuda.o", "cuda.cu")
        objects.append("cuda.o")
    add_link(steps, request, library, objects, cuda=request.uses_cuda)
    return steps


def _leaves_host_compiler(request: BuildRequest) -> bool:
    """Whether nvcc chooses its host compiler itself, and so uses the gcc on the path."""
    given = [*request.extra_cuda_cflags, *(os.environ.get(name, "") for name in FLAG_VARIABLES)]
    chosen = any("-ccbin" in words or "--compiler-bindir" in words for words in given)
    return not chosen and toolchain.nvcc_takes_gcc_from_the_path()


def _nvcc_command(
    request: BuildRequest, common: Sequence[str], architectures: Sequence[str], host: Sequence[str]
) -> str:
    own = _without_native(split(request.extra_cuda_cflags))
    chosen = any("arch" in flag or flag.startswith("-gencode") for flag in own)
    standard = [] if any(flag.startswith("-std=") for flag in own) else [toolchain.torch().cxx_standard]
    threads = any(flag.startswith(("-t", "--threads")) for flag in own)
    named = {arch for flag in own for arch in re.findall(r"arch=(\w+)", flag)} if chosen else architectures
    parallel = [] if threads else [f"--threads={max(1, len(named))}"]
    return command([
        NVCC, *parallel, *host, *common, *NVCC_FLAGS, *([] if chosen else _gencode(architectures)),
        "--compiler-options", "-fPIC", *own, *standard, "-c", IN, "-o", OUT,
    ])


def _without_native(flags: Sequence[str]) -> list[str]:
    """Removes `native`, because the harness knows the GPU, but a compiler in a sandbox sees none."""
    names = ("-arch", "--gpu-architecture")
    kept: list[str] = []
    for flag in flags:
        if flag == "native" and kept and kept[-1] in names:
            kept.pop()
        elif flag not in [f"{name}=native" for name in names]:
            kept.append(flag)
    return kept


def _gencode(architectures: Sequence[str]) -> list[str]:
    """Returns flags for machine code for each architecture, and PTX for newer GPUs."""
    flags = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in architectures]
    newer = architecture.for_newer(architectures)
    return [*flags, f"-gencode=arch=compute_{newer},code=compute_{newer}"]


def _compilers(request: BuildRequest) -> list[str]:
    return [toolchain.cxx(), *([toolchain.nvcc()] if request.uses_cuda else [])]


def _places(request: BuildRequest, precompiled: Path) -> dict[str, str]:
    if not request.uses_cuda:
        return common_places()
    own = precompiled / HOST_COMPILER
    exists = precompiled != PRECOMPILED_DIR and own.exists()
    host = {"ccbin": "-ccbin", "host": str(own)} if exists else {"ccbin": "", "host": ""}
    return {**common_places(), "nvcc": toolchain.nvcc(), "cuda": str(toolchain.cuda_home()),
            "thrust": str(THRUST_DIR), **host, "precompiled": str(precompiled), "prefix": str(PRECOMPILED_DIR)}
