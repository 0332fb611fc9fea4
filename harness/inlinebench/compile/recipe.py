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
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.ninja_syntax import PLACES, Expanded, Steps, places_file, split
from inlinebench.compile.slim import SLIM_DIR, further_headers

RECIPE = 4
"""Version of the recipes, part of every key. Raise it if the commands below produce other libraries."""
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Environment variables with flags for nvcc."""
FUNCTIONS = "functions"
"""The file name that compilers print for the lines that bind `functions` to Python. Line 2 has the first function."""
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


def finished(
    library: str, files: Mapping[str, str], steps: Steps, places: Mapping[str, str], *, compilers: Sequence[str],
    headers: Sequence[Path] = (SLIM_DIR,), request: BuildRequest | None = None,
) -> Recipe:
    """Returns a recipe with its key.

    Args:
        library: the file that ninja makes.
        files: the sources and headers by file name.
        steps: the commands.
        places: the locations of what the commands refer to by variables.
        compilers: the programs whose versions are part of the key.
        headers: the harness's folders of headers that the sources may include.
        request: the request that is built, if there is one.
    """
    files = {**files, "build.ninja": steps.text}
    key = _key_of(files, compilers, headers)
    return Recipe({**files, PLACES: places_file(places)}, library, key, request)


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


def fits_precompiled(flags: Sequence[str]) -> bool:
    """Whether precompiled headers stay valid with these flags. Covers only what GCC does not check."""
    words = [word for flag in split(flags) for word in re.split("[,=]", flag)]
    return all(word in _HARMLESS for word in words if word.startswith("-f"))


FEWER_ERRORS = "-fmax-errors=50"
"""A flag of the C++ compiler, because describing 10,000 errors takes minutes. nvcc stops after 100 by itself."""


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


def common_places() -> dict[str, str]:
    """Returns the locations of the C++ compiler and of the harness's, torch's and Python's headers. Raises MissingTool.
    """
    return {"cxx": toolchain.cxx(), "slim": str(SLIM_DIR), "torch": str(toolchain.torch().root),
            "python": str(toolchain.python_include())}


def _key_of(files: Mapping[str, str], compilers: Sequence[str], headers: Sequence[Path]) -> str:
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
        "headers": [headers_of(folder) for folder in headers],
        "python": sysconfig.get_config_var("SOABI"),
        "libc": platform.libc_ver(),
        # Code for this processor may not run on another.
        "processor": toolchain.processor() if "=native" in files["build.ninja"] else "",
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def headers_of(folder: Path) -> dict[str, str]:
    """Returns the texts of the harness's headers in a folder by their names, which a process reads once."""
    paths = [path for path in folder.rglob("*") if path.suffix in (".h", ".cuh", "") and path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
