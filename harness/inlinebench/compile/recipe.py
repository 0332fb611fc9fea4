"""Turns a build request into files: the sources as `load_inline` assembles them, and a ninja file with the commands.

The locations of compilers, torch and the harness's headers are not part of a build's key: commands refer to them by
ninja's variables (`$torch/include`), which a separate file defines (`inlinebench.compile.ninja_syntax`). So a cache can
be copied to another machine with the same compilers, torch and Python, wherever they are installed there.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inlinebench.compile import architecture, toolchain
from inlinebench.compile.linking import link_lines
from inlinebench.compile.ninja_syntax import (
    CXX,
    HOST,
    IN,
    NVCC,
    OUT,
    PLACES,
    PRECOMPILED_INCLUDE,
    SLIM,
    THRUST,
    TORCH_INCLUDES,
    Expanded,
    command,
    places_file,
    split,
)
from inlinebench.compile.precompiled import BINDING, HOST_COMPILER, PRECOMPILED_DIR
from inlinebench.compile.slim import SLIM_DIR, THRUST_DIR, further_headers, needs_thrust
from inlinebench.records.build_request import BuildRequest

RECIPE = 4
"""Version of the recipes, part of every key. Raise it if the commands below produce other libraries."""
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Environment variables with flags for nvcc."""
FUNCTIONS = "functions"
"""The file name that compilers print for the lines that bind `functions` to Python. Line 2 has the first function."""
_HEADERS = (SLIM_DIR, THRUST_DIR, PRECOMPILED_DIR)
_NOTHING = "int inlinebench_nothing;"
_OPTIMIZATIONS = {"plain": (), "O3": ("-O3",)}
"""The most common optimization levels. Precompiled headers are made for each, because their text depends on it."""
_HARMLESS = ("-fPIC", "-fpic", "-ftz", "-fmad")
"""Flags that begin with -f but do not affect precompiled headers. GCC does not check these flags itself."""


# As torch sets them: its headers define these operators for its own types, and would clash with CUDA's.
NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)


@dataclass(frozen=True)
class Recipe:
    """The files of a build."""

    files: dict[str, str]
    """Texts by file name, including `build.ninja`."""
    library: str
    """Name of the library that ninja makes."""
    key: str
    """The key of the content."""
    request: BuildRequest | None = None
    """The request that is built, if there is one."""


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
    files["build.ninja"] = _ninja_file(request, library, architectures, slim)
    key = key_of(files, _compilers(request), _HEADERS)
    return Recipe({**files, PLACES: places_file(_places(request, precompiled))}, library, key, request)


def precompiled_kernel_recipe(architectures: Sequence[str]) -> Recipe:
    """Returns the recipe for the precompiled headers that `recipe` uses, with the same flags. Raises MissingTool."""
    common = folder_flags([SLIM, *TORCH_INCLUDES, Expanded("$cuda/include")])
    compile_binding = command([CXX, *common, "-fPIC", toolchain.torch().cxx_standard, "-x", "c++-header", IN, "-o",
                               OUT])
    lines = [f"include {PLACES}", "rule binding", f"  command = {compile_binding}", "",
             f"build {BINDING}.gch: binding $prefix/{BINDING}", ""]
    own = f"./{HOST_COMPILER}"
    request = BuildRequest("inlinebench_prefix", (), (_NOTHING,))
    for name, flags in _OPTIMIZATIONS.items() if _leaves_host_compiler(request) else ():
        request = replace(request, extra_cuda_cflags=flags)
        compile_kernel = _nvcc_command(request, ["-isystem", THRUST, *common], architectures, ["-ccbin", own])
        lines += [f"rule {name}", f"  command = chmod +x {own} && INLINEBENCH_MAKE_PREFIX={name} {compile_kernel} && "
                  f"test -e {name}/prefix.h.gch", "", f"build {name}.o: {name} cuda.cu", ""]
    files = {"cuda.cu": cuda_source(request, request.cuda_sources, slim=True), "build.ninja": "\n".join(lines),
             HOST_COMPILER: (PRECOMPILED_DIR / HOST_COMPILER).read_text(encoding="utf-8")}
    key = key_of(files, _compilers(request), _HEADERS)
    return Recipe({**files, PLACES: places_file(_places(request, PRECOMPILED_DIR))}, f"{BINDING}.gch", key)


def clock_recipe(source: Path, architectures: Sequence[str]) -> Recipe:
    """Returns the recipe for the GPU clock: one CUDA file that does not use torch. Raises MissingTool."""
    flags = ["-O2", "-shared", "-Xcompiler", "-fPIC", *_gencode(architectures)]
    compile_clock = command([NVCC, *flags, "-o", OUT, IN])
    lines = [f"include {PLACES}", "rule nvcc", f"  command = {compile_clock}", "", "build clock.so: nvcc clock.cu", ""]
    files = {"clock.cu": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    key = key_of(files, [toolchain.nvcc()])
    return Recipe({**files, PLACES: places_file({"nvcc": toolchain.nvcc()})}, "clock.so", key)


def trace_recipe(source: Path) -> Recipe:
    """Returns the recipe for the CUPTI tracer: one C++ file with the toolkit's headers. Raises MissingTool."""
    folders = [Expanded("-I$cuda/include"), Expanded("-I$cuda/extras/CUPTI/include")]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *folders]
    compile_trace = command([CXX, *flags, IN, "-o", OUT, "-ldl"])
    lines = [f"include {PLACES}", "rule cxx", f"  command = {compile_trace}", "", "build trace.so: cxx trace.cpp", ""]
    files = {"trace.cpp": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    key = key_of(files, [toolchain.cxx(), toolchain.nvcc()])  # nvcc's version stands for the toolkit and its headers
    places = {"cxx": toolchain.cxx(), "cuda": str(toolchain.cuda_home())}
    return Recipe({**files, PLACES: places_file(places)}, "trace.so", key)


def cpp_source(request: BuildRequest, sources: Sequence[str], slim: bool) -> str:
    """Returns the C++ file: torch's header, the sources, and the bindings for `functions`."""
    parts = _includes(request, ["torch/extension.h"], sources, slim)
    parts += labelled(sources, "cpp_sources")
    if request.functions is not None:
        parts.append(f'#line 1 "{FUNCTIONS}"')
        parts.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for name, docstring in request.functions.items():
            function = f"torch::wrap_pybind_function({name})" if request.with_pytorch_error_handling else name
            parts.append(f"m.def({json.dumps(name)}, {function}, {json.dumps(docstring)});")
        parts.append("}")
    return "\n".join(parts) + "\n"


def cuda_source(request: BuildRequest, sources: Sequence[str], slim: bool) -> str:
    """Returns the CUDA file: the headers that torch puts first, and the sources."""
    parts = _includes(request, ["torch/types.h", "cuda.h", "cuda_runtime.h"], sources, slim)
    return "\n".join([*parts, *labelled(sources, "cuda_sources")]) + "\n"


def _includes(request: BuildRequest, headers: Sequence[str], sources: Sequence[str], slim: bool) -> list[str]:
    if request.no_implicit_headers:
        return []
    called = further_headers((*sources, *request.headers.values()), toolchain.torch().include_dirs[0]) if slim else []
    return [f"#include <{header}>" for header in (*headers, *called)]


def labelled(sources: Sequence[str], name: str) -> list[str]:
    """Returns the sources with `#line` directives for the names and line numbers that their author knows."""
    several = len(sources) > 1
    labels = (f"{name}[{index}]" if several else name for index in range(len(sources)))
    return [f'#line 1 "{label}"\n{source}' for label, source in zip(labels, sources, strict=True)]


def _ninja_file(request: BuildRequest, library: str, architectures: Sequence[str], slim: bool) -> str:
    folders = [*([SLIM] if slim else []), *TORCH_INCLUDES, *([Expanded("$cuda/include")] if request.uses_cuda else [])]
    common = common_flags(request, folders)
    precompiled = slim and request.uses_cuda and not request.no_implicit_headers
    first = [*PRECOMPILED_INCLUDE, BINDING] if precompiled and fits_precompiled(request.extra_cflags) else []
    compile_cxx = command([CXX, *common, *first, "-fPIC", toolchain.torch().cxx_standard,
                           *split(request.extra_cflags), "-c", IN, "-o", OUT])
    lines = [f"include {PLACES}", "rule cxx", f"  command = {compile_cxx}", "", "build main.o: cxx main.cpp", ""]
    objects = ["main.o"]
    if request.cuda_sources:
        without_thrust = slim and not needs_thrust(request.texts)
        common = common_flags(request, [*([THRUST] if without_thrust else []), *folders])
        may_be_precompiled = _leaves_host_compiler(request) and fits_precompiled(request.extra_cuda_cflags)
        host = HOST if precompiled and may_be_precompiled else ()
        compile_cuda = _nvcc_command(request, common, architectures, host)
        lines += ["rule nvcc", f"  command = {compile_cuda}", "", "build cuda.o: nvcc cuda.cu", ""]
        objects.append("cuda.o")
    return "\n".join(lines + link_lines(request, library, objects, cuda=request.uses_cuda))


def _leaves_host_compiler(request: BuildRequest) -> bool:
    """Whether nvcc chooses its host compiler itself, and so uses the gcc on the path."""
    given = [*request.extra_cuda_cflags, *(os.environ.get(name, "") for name in FLAG_VARIABLES)]
    chosen = any("-ccbin" in words or "--compiler-bindir" in words for words in given)
    return not chosen and toolchain.nvcc_takes_gcc_from_the_path()


def fits_precompiled(flags: Sequence[str]) -> bool:
    """Whether precompiled headers stay valid with these flags. Covers only what GCC does not check."""
    words = [word for flag in split(flags) for word in re.split("[,=]", flag)]
    return all(word in _HARMLESS for word in words if word.startswith("-f"))


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


def common_flags(request: BuildRequest, folders: Sequence[str]) -> list[str]:
    """Returns the macros of torch's own builds and the include paths: the request's, `folders`, and Python's."""
    own = [f"-I{folder}" for folder in request.extra_include_paths]
    return [f"-DTORCH_EXTENSION_NAME={request.name}", *own, *folder_flags(folders)]


def folder_flags(folders: Sequence[str]) -> list[str]:
    """Returns the include paths of every source: `folders` and Python's."""
    flags = ["-DTORCH_API_INCLUDE_EXTENSION_H"]
    for folder in (*folders, Expanded("$python")):
        flags += ["-isystem", folder]
    return flags


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


def common_places() -> dict[str, str]:
    """Returns the locations of the C++ compiler and of the harness's, torch's and Python's headers. Raises MissingTool.
    """
    return {"cxx": toolchain.cxx(), "slim": str(SLIM_DIR), "torch": str(toolchain.torch().root),
            "python": str(toolchain.python_include())}


def key_of(files: Mapping[str, str], compilers: Sequence[str], headers: Sequence[Path] = (SLIM_DIR,)) -> str:
    """Returns the key of the content: the files (sources, flags, architectures), the harness's headers, versions and
    ABI.

    Files contain no paths except those in a solution, so the locations of cache and checkout do not matter.
    """
    content = {
        "recipe": RECIPE,
        "files": files,
        "compilers": [toolchain.version_of(compiler) for compiler in compilers],
        "flags": [os.environ.get(name, "") for name in FLAG_VARIABLES],
        "torch": toolchain.torch().version,
        "headers": [_headers(folder) for folder in headers],
        "python": sysconfig.get_config_var("SOABI"),
        "libc": platform.libc_ver(),
        # Code for this processor may not run on another.
        "processor": toolchain.processor() if "=native" in files["build.ninja"] else "",
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _headers(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.suffix in (".h", ".cuh", "") and path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
