"""Turns a build request into files and commands: the sources as `load_inline` puts them together, and a ninja file.

Where compilers, torch and our own headers lie is no part of a build's key: commands name them through ninja's
variables (`$torch/include`), and a file of its own says what these are (`inlinebench.compile.ninja_syntax`). So a cache
can be carried to another machine that has the same compilers, torch and Python, wherever they lie there.
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
    PREFIXED,
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
"""Part of every key: raised when the commands below change what comes out."""
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Flags that nvcc takes from the environment."""
FUNCTIONS = "functions"
"""What compilers call the lines that bind `functions` to Python; the first function is in line 2."""
_HEADERS = (SLIM_DIR, THRUST_DIR, PRECOMPILED_DIR)
_NOTHING = "int inlinebench_nothing;"
_OPTIMIZATIONS = {"plain": (), "O3": ("-O3",)}
"""The levels with which kernels are mostly built: what headers say differs with them."""
_HARMLESS = ("-fPIC", "-fpic", "-ftz", "-fmad")
"""Of the flags that begin with -f those for which precompiled headers stay the same; GCC doesn't look at them."""


# As torch sets them: its own headers define these operators for its types, and CUDA's would clash.
NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)


@dataclass(frozen=True)
class Recipe:
    """Files by name, among them `build.ninja`, the name of the library that ninja makes, the content's key, and the
    request that it is for, if it is for one."""

    files: dict[str, str]
    library: str
    key: str
    request: BuildRequest | None = None


def recipe(
    request: BuildRequest, architectures: Sequence[str], slim: bool, precompiled: Path = PRECOMPILED_DIR
) -> Recipe:
    """What to write and run for a request, with slim headers or torch's full ones; `precompiled` is the folder of
    precompiled headers, if there are any.

    Raises MissingTool, or BadRequest for flags that no command can hold.
    """
    library = f"{request.name}.so"
    files = {**request.headers, "main.cpp": cpp_source(request, request.cpp_sources, slim)}
    if request.cuda_sources:
        files["cuda.cu"] = cuda_source(request, request.cuda_sources, slim)
    files["build.ninja"] = _ninja_file(request, library, architectures, slim)
    key = key_of(files, _compilers(request), _HEADERS)
    return Recipe({**files, PLACES: places_file(_places(request, precompiled))}, library, key, request)


def precompiled_kernel_recipe(architectures: Sequence[str]) -> Recipe:
    """What to run for the precompiled headers that `recipe` reads, with its flags. Raises MissingTool."""
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
    """The GPU clock: one CUDA file without torch. Raises MissingTool."""
    flags = ["-O2", "-shared", "-Xcompiler", "-fPIC", *_gencode(architectures)]
    compile_clock = command([NVCC, *flags, "-o", OUT, IN])
    lines = [f"include {PLACES}", "rule nvcc", f"  command = {compile_clock}", "", "build clock.so: nvcc clock.cu", ""]
    files = {"clock.cu": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    key = key_of(files, [toolchain.nvcc()])
    return Recipe({**files, PLACES: places_file({"nvcc": toolchain.nvcc()})}, "clock.so", key)


def trace_recipe(source: Path) -> Recipe:
    """What asks CUPTI which kernels ran: one C++ file with the toolkit's headers. Raises MissingTool."""
    folders = [Expanded("-I$cuda/include"), Expanded("-I$cuda/extras/CUPTI/include")]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *folders]
    compile_trace = command([CXX, *flags, IN, "-o", OUT, "-ldl"])
    lines = [f"include {PLACES}", "rule cxx", f"  command = {compile_trace}", "", "build trace.so: cxx trace.cpp", ""]
    files = {"trace.cpp": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    key = key_of(files, [toolchain.cxx(), toolchain.nvcc()])  # nvcc stands for its toolkit, whose headers are read
    places = {"cxx": toolchain.cxx(), "cuda": str(toolchain.cuda_home())}
    return Recipe({**files, PLACES: places_file(places)}, "trace.so", key)


def cpp_source(request: BuildRequest, sources: Sequence[str], slim: bool) -> str:
    """The C++ file: torch's header, the sources, and the bindings that `functions` asks for."""
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
    """The CUDA file: the headers that torch puts first, and the sources."""
    parts = _includes(request, ["torch/types.h", "cuda.h", "cuda_runtime.h"], sources, slim)
    return "\n".join([*parts, *labelled(sources, "cuda_sources")]) + "\n"


def _includes(request: BuildRequest, headers: Sequence[str], sources: Sequence[str], slim: bool) -> list[str]:
    if request.no_implicit_headers:
        return []
    called = further_headers((*sources, *request.headers.values()), toolchain.torch().include_dirs[0]) if slim else []
    return [f"#include <{header}>" for header in (*headers, *called)]


def labelled(sources: Sequence[str], name: str) -> list[str]:
    """The sources, each with the name and the line numbers that its author knows it by."""
    several = len(sources) > 1
    labels = (f"{name}[{index}]" if several else name for index in range(len(sources)))
    return [f'#line 1 "{label}"\n{source}' for label, source in zip(labels, sources, strict=True)]


def _ninja_file(request: BuildRequest, library: str, architectures: Sequence[str], slim: bool) -> str:
    folders = [*([SLIM] if slim else []), *TORCH_INCLUDES, *([Expanded("$cuda/include")] if request.uses_cuda else [])]
    common = common_flags(request, folders)
    prefixed = slim and request.uses_cuda and not request.no_implicit_headers
    first = [*PREFIXED, BINDING] if prefixed and fits_precompiled(request.extra_cflags) else []
    compile_cxx = command([CXX, *common, *first, "-fPIC", toolchain.torch().cxx_standard,
                           *split(request.extra_cflags), "-c", IN, "-o", OUT])
    lines = [f"include {PLACES}", "rule cxx", f"  command = {compile_cxx}", "", "build main.o: cxx main.cpp", ""]
    objects = ["main.o"]
    if request.cuda_sources:
        without_thrust = slim and not needs_thrust(request.texts)
        common = common_flags(request, [*([THRUST] if without_thrust else []), *folders])
        may_be_precompiled = _leaves_host_compiler(request) and fits_precompiled(request.extra_cuda_cflags)
        host = HOST if prefixed and may_be_precompiled else ()
        compile_cuda = _nvcc_command(request, common, architectures, host)
        lines += ["rule nvcc", f"  command = {compile_cuda}", "", "build cuda.o: nvcc cuda.cu", ""]
        objects.append("cuda.o")
    return "\n".join(lines + link_lines(request, library, objects, cuda=request.uses_cuda))


def _leaves_host_compiler(request: BuildRequest) -> bool:
    """Whether nvcc is left to choose its host compiler, and takes the gcc on the path."""
    said = [*request.extra_cuda_cflags, *(os.environ.get(name, "") for name in FLAG_VARIABLES)]
    chosen = any("-ccbin" in words or "--compiler-bindir" in words for words in said)
    return not chosen and toolchain.nvcc_takes_gcc_from_the_path()


def fits_precompiled(flags: Sequence[str]) -> bool:
    """Whether precompiled headers mean the same with these flags, as far as GCC doesn't find out by itself."""
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
    """Leaves out `native`: which GPU is there is known here, and not to a compiler in a sandbox without any."""
    names = ("-arch", "--gpu-architecture")
    kept: list[str] = []
    for flag in flags:
        if flag == "native" and kept and kept[-1] in names:
            kept.pop()
        elif flag not in [f"{name}=native" for name in names]:
            kept.append(flag)
    return kept


def common_flags(request: BuildRequest, folders: Sequence[str]) -> list[str]:
    """The macros of torch's own builds, the request's include paths, then these folders and Python's."""
    own = [f"-I{folder}" for folder in request.extra_include_paths]
    return [f"-DTORCH_EXTENSION_NAME={request.name}", *own, *folder_flags(folders)]


def folder_flags(folders: Sequence[str]) -> list[str]:
    """The include paths of every source: these folders and Python's."""
    flags = ["-DTORCH_API_INCLUDE_EXTENSION_H"]
    for folder in (*folders, Expanded("$python")):
        flags += ["-isystem", folder]
    return flags


def _gencode(architectures: Sequence[str]) -> list[str]:
    """Machine code for each architecture, and PTX of one for newer GPUs."""
    flags = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in architectures]
    newer = architecture.for_newer(architectures)
    return [*flags, f"-gencode=arch=compute_{newer},code=compute_{newer}"]


def _compilers(request: BuildRequest) -> list[str]:
    return [toolchain.cxx(), *([toolchain.nvcc()] if request.uses_cuda else [])]


def _places(request: BuildRequest, precompiled: Path) -> dict[str, str]:
    if not request.uses_cuda:
        return common_places()
    own = precompiled / HOST_COMPILER
    there = precompiled != PRECOMPILED_DIR and own.exists()
    host = {"ccbin": "-ccbin", "host": str(own)} if there else {"ccbin": "", "host": ""}
    return {**common_places(), "nvcc": toolchain.nvcc(), "cuda": str(toolchain.cuda_home()),
            "thrust": str(THRUST_DIR), **host, "precompiled": str(precompiled), "prefix": str(PRECOMPILED_DIR)}


def common_places() -> dict[str, str]:
    """Where the C++ compiler, our headers, torch and Python's headers lie. Raises MissingTool."""
    return {"cxx": toolchain.cxx(), "slim": str(SLIM_DIR), "torch": str(toolchain.torch().root),
            "python": str(toolchain.python_include())}


def key_of(files: Mapping[str, str], compilers: Sequence[str], headers: Sequence[Path] = (SLIM_DIR,)) -> str:
    """The content's key. The files hold sources, flags and architectures; our headers, versions and the ABI are added.

    They name no folder but those that a solution names itself, so it doesn't matter where cache and checkout lie.
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
        # What is compiled for this very processor may not run on another.
        "processor": toolchain.processor() if "=native" in files["build.ninja"] else "",
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _headers(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.suffix in (".h", ".cuh")]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
