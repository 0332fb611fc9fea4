"""Turns a build request into files and commands: the sources as `load_inline` puts them together, and a ninja file."""

from __future__ import annotations

import hashlib
import json
import shlex
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.build import toolchain
from harness.build.request import BadRequest, BuildRequest
from harness.build.slim import SLIM_DIR, operator_headers

RECIPE = 1
"""Part of every key: raised when the commands below change what comes out."""

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
    """Files by name, among them `build.ninja`, the name of the library that ninja makes, and the content's key."""

    files: dict[str, str]
    library: str
    key: str


def recipe(request: BuildRequest, architectures: Sequence[str], slim: bool) -> Recipe:
    """What to write and run for a request, with slim headers or torch's full ones.

    Raises MissingTool, or BadRequest for flags that no command can hold.
    """
    library = f"{request.name}.so"
    files = {"main.cpp": cpp_source(request, request.cpp_sources, slim)}
    if request.cuda_sources:
        files["cuda.cu"] = cuda_source(request, request.cuda_sources, slim)
    files["build.ninja"] = _ninja_file(request, library, architectures, slim)
    return Recipe(files, library, key_of(files, _compilers(request)))


def clock_recipe(source: Path, architectures: Sequence[str]) -> Recipe:
    """The GPU clock: one CUDA file without torch. Raises MissingTool."""
    flags = ["-O2", "-shared", "-Xcompiler", "-fPIC", *_gencode(architectures)]
    compile_clock = command([toolchain.nvcc(), *flags, "-o", "$out", "$in"])
    lines = ["rule nvcc", f"  command = {compile_clock}", "", "build clock.so: nvcc clock.cu", ""]
    files = {"clock.cu": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    return Recipe(files, "clock.so", key_of(files, [toolchain.nvcc()]))


def trace_recipe(source: Path) -> Recipe:
    """What asks CUPTI which kernels ran: one C++ file with the toolkit's headers. Raises MissingTool."""
    folders = [toolchain.cuda_home() / "include", toolchain.cuda_home() / "extras" / "CUPTI" / "include"]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *(f"-I{folder}" for folder in folders)]
    compile_trace = command([toolchain.cxx(), *flags, "$in", "-o", "$out", "-ldl"])
    lines = ["rule cxx", f"  command = {compile_trace}", "", "build trace.so: cxx trace.cpp", ""]
    files = {"trace.cpp": source.read_text(encoding="utf-8"), "build.ninja": "\n".join(lines)}
    return Recipe(files, "trace.so", key_of(files, [toolchain.cxx()]))


def cpp_source(request: BuildRequest, sources: Sequence[str], slim: bool) -> str:
    """The C++ file: torch's header, the sources, and the bindings that `functions` asks for."""
    parts = _includes(request, ["torch/extension.h"], sources, slim)
    parts += _labelled(sources, "cpp_sources")
    if request.functions is not None:
        parts.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for name, docstring in request.functions.items():
            function = f"torch::wrap_pybind_function({name})" if request.with_pytorch_error_handling else name
            parts.append(f"m.def({json.dumps(name)}, {function}, {json.dumps(docstring)});")
        parts.append("}")
    return "\n".join(parts) + "\n"


def cuda_source(request: BuildRequest, sources: Sequence[str], slim: bool) -> str:
    """The CUDA file: the headers that torch puts first, and the sources."""
    parts = _includes(request, ["torch/types.h", "cuda.h", "cuda_runtime.h"], sources, slim)
    return "\n".join([*parts, *_labelled(sources, "cuda_sources")]) + "\n"


def _includes(request: BuildRequest, headers: Sequence[str], sources: Sequence[str], slim: bool) -> list[str]:
    if request.no_implicit_headers:
        return []
    called = operator_headers(sources, toolchain.torch().include_dirs[0]) if slim else []
    return [f"#include <{header}>" for header in (*headers, *called)]


def _labelled(sources: Sequence[str], name: str) -> list[str]:
    """The sources, each with the name and the line numbers that its author knows it by."""
    several = len(sources) > 1
    labels = (f"{name}[{index}]" if several else name for index in range(len(sources)))
    return [f'#line 1 "{label}"\n{source}' for label, source in zip(labels, sources, strict=True)]


def _ninja_file(request: BuildRequest, library: str, architectures: Sequence[str], slim: bool) -> str:
    folders = [*([SLIM_DIR] if slim else []), *toolchain.torch().include_dirs]
    folders += [toolchain.cuda_home() / "include"] if request.uses_cuda else []
    common = common_flags(request, folders)
    compile_cxx = command([toolchain.cxx(), *common, "-fPIC", toolchain.torch().cxx_standard,
                           *split(request.extra_cflags), "-c", "$in", "-o", "$out"])
    lines = ["rule cxx", f"  command = {compile_cxx}", "", "build main.o: cxx main.cpp", ""]
    objects = ["main.o"]
    if request.cuda_sources:
        lines += ["rule nvcc", f"  command = {_nvcc_command(request, common, architectures)}", "",
                  "build cuda.o: nvcc cuda.cu", ""]
        objects.append("cuda.o")
    link = command([toolchain.cxx(), "-shared", "$in", *link_flags(request, cuda=request.uses_cuda), "-o", "$out"])
    lines += ["rule link", f"  command = {link}", "", f"build {library}: link {' '.join(objects)}", ""]
    return "\n".join(lines)


def _nvcc_command(request: BuildRequest, common: Sequence[str], architectures: Sequence[str]) -> str:
    own = split(request.extra_cuda_cflags)
    chosen = any("arch" in flag or flag.startswith("-gencode") for flag in own)
    standard = [] if any(flag.startswith("-std=") for flag in own) else [toolchain.torch().cxx_standard]
    return command([
        toolchain.nvcc(), *common, *NVCC_FLAGS, *([] if chosen else _gencode(architectures)),
        "--compiler-options", "-fPIC", *own, *standard, "-c", "$in", "-o", "$out",
    ])


def common_flags(request: BuildRequest, folders: Sequence[Path]) -> list[str]:
    """The macros of torch's own builds, the request's include paths, then these folders and Python's."""
    flags = [f"-DTORCH_EXTENSION_NAME={request.name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    flags += [f"-I{folder}" for folder in request.extra_include_paths]
    for folder in (*folders, Path(sysconfig.get_path("include"))):
        flags += ["-isystem", str(folder)]
    return flags


def link_flags(request: BuildRequest, *, cuda: bool) -> list[str]:
    """The request's own flags and torch's libraries, with those for CUDA or without."""
    flags = [*split(request.extra_ldflags), f"-L{toolchain.torch().library_dir}", "-lc10"]
    if cuda:
        flags.append("-lc10_cuda")
    flags.append("-ltorch_cpu")
    if cuda:
        flags.append("-ltorch_cuda")
    flags += ["-ltorch", "-ltorch_python"]
    if cuda:
        flags += [f"-L{toolchain.cuda_home() / 'lib64'}", "-lcudart"]
    return flags


def _gencode(architectures: Sequence[str]) -> list[str]:
    """Machine code for each architecture, and PTX of the last for newer ones."""
    flags = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in architectures]
    return [*flags, f"-gencode=arch=compute_{architectures[-1]},code=compute_{architectures[-1]}"]


def split(flags: Sequence[str]) -> list[str]:
    """Single flags: one string may hold several, as in the shell command that torch makes of them."""
    words: list[str] = []
    for flag in flags:
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise BadRequest(f"the flag {flag!r} can't be read: {error}") from error
    return words


def command(words: Sequence[str]) -> str:
    """A shell command for a ninja rule; nothing in it is expanded but ninja's own `$in` and `$out`."""
    for word in words:
        if "\n" in word:
            raise BadRequest(f"the flag {word!r} has a line break, which no ninja file can hold")
    escaped = (word if word in ("$in", "$out") else shlex.quote(word).replace("$", "$$") for word in words)
    return " ".join(escaped)


def _compilers(request: BuildRequest) -> list[str]:
    return [toolchain.cxx(), *([toolchain.nvcc()] if request.uses_cuda else [])]


def key_of(files: dict[str, str], compilers: Sequence[str]) -> str:
    """The content's key. The files hold sources, flags, paths and architectures; versions and the ABI are added."""
    content = {
        "recipe": RECIPE,
        "files": files,
        "compilers": [toolchain.version_of(compiler) for compiler in compilers],
        "torch": toolchain.torch().version,
        "slim": [path.read_text() for path in sorted(SLIM_DIR.rglob("*.h"))],
        "python": sysconfig.get_config_var("SOABI"),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
