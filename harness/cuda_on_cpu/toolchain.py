"""Compiler flags for translated sources, and the runtime libraries that they are linked with.

A translated source is compiled by `g++ -x c++ *host_flags(cuda_flags) *SOURCE_FLAGS -I INCLUDE_DIR ...` and linked with
`link_flags(runtime_library(cache))`. All modules of a process share this library.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_HERE = Path(__file__).resolve().parent
INCLUDE_DIR = _HERE / "include"
"""Comes before torch's include folders, and replaces the CUDA toolkit's."""

_RUNTIME = _HERE / "runtime"
_RUNTIME_NAMES = ("fibre", "memory", "worker", "arrays", "faults", "grid", "async_copies", "tensor_cores",
                  "cooperative", "interleaving", "shadow", "clocks", "races", "copy_races", "streams", "stream_races",
                  "race_hooks", "race_report", "xorwow")
RUNTIME_SOURCES: tuple[Path, ...] = tuple(_RUNTIME / f"{name}.cpp" for name in _RUNTIME_NAMES)
"""The sources of `runtime_library`. They do not use torch's headers."""

_DIGEST_BYTES = 32
_ALLOCATOR_SOURCE = _RUNTIME / "torch_allocator.cpp"

SOURCE_FLAGS = (
    "-include",
    "cuda_runtime.h",  # nvcc includes it implicitly
    "-fPIC",
    "-fno-strict-aliasing",  # CUDA code often loads vectors through reinterpret_cast
    "-fwrapv",  # integers wrap around, as on the hardware
    "-fno-math-errno",
    "-fsanitize=alignment",  # a misaligned vector load is an error on the hardware too; the check costs little
    "-fsanitize-undefined-trap-on-error",
    "-fno-gnu-unique",  # two modules may have kernels of the same name
    "-Wno-unknown-pragmas",  # #pragma unroll
    "-Wno-attributes",
)
"""Flags for a translated CUDA source. A plain C++ source needs only INCLUDE_DIR."""

RACE_FLAGS = (
    "-fsanitize=thread",  # calls the runtime (race_hooks.cpp) before each access; libtsan is not linked
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wno-tsan",  # libtsan does not know fences; the runtime does
    *("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"),  # calls, which the linker wraps
    *("-fno-crossjumping", "-fno-tree-tail-merge"),  # they would join the traps of different lines
    *("-g1", "-gdwarf-4"),  # lines of the accesses; addr2line confuses the files of DWARF 5
)
"""Further flags for a translated source whose data races are looked for."""

_RACE_LINK_FLAGS = ("-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",)

_RUNTIME_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fno-semantic-interposition", "-Wall", "-Wextra")
_RUNTIME_LINK_FLAGS = ("-lpthread", "-Wl,-Bsymbolic-functions")  # its own calls need not look up their targets

_KEPT_PREFIXES = ("-D", "-U", "-I", "-std=", "-O", "-W", "-f")
_KEPT_EXACTLY = {"-g", "-w"}
_KEPT_WITH_VALUE = {"-D", "-U", "-I", "-include", "-isystem"}
_LONG_FORMS = {
    "--define-macro": "-D",
    "--undefine-macro": "-U",
    "--include-path": "-I",
    "--std": "-std=",
    "--optimize": "-O",
}
_HOST_OPTIONS = ("-Xcompiler", "--compiler-options")
# These flags change floating-point results on the CPU in ways that nvcc's flags of similar names do not.
_NEVER = ("-fmad", "-ffast-math", "-Ofast", "-Werror", "-ftz", "-fatbin", "-forward-")
_CUDA_LIBRARY = re.compile(
    r"-l(cuda\w*|cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|nccl|nvrtc|nvToolsExt|nvidia-ml)"
)
_VALUE_TAKERS = set(
    [
        "-Xptxas",
        "--ptxas-options",
        "-Xcudafe",
        "-Xnvlink",
        "-Xarchive",
        "-Xfatbin",
        "-gencode",
        "--generate-code",
        "-arch",
        "--gpu-architecture",
        "-code",
        "--gpu-code",
        "-ccbin",
        "--compiler-bindir",
        "-maxrregcount",
        "--maxrregcount",
        "-diag-suppress",
        "--diag-suppress",
        "-diag-error",
        "-t",
        "--threads",
        "-Xlinker",
        "--linker-options",
        "-rdc",
        "-x",
        "-o",
        "-l",
        "-L",
        "--default-stream",
        "-default-stream",
        "--split-compile",
        "-split-compile",
    ]
)


def host_flags(cuda_flags: Sequence[str]) -> list[str]:
    """Returns the nvcc flags that g++ understands: -D, -U, -I, -std, -O and those after -Xcompiler."""
    kept: list[str] = []
    flags = iter(cuda_flags)
    for flag in flags:
        name, _, value = flag.partition("=")
        if name in _HOST_OPTIONS:
            kept += host_flags((value or next(flags, "")).strip("'\"").split(","))
        elif name in _LONG_FORMS:
            value = value or next(flags, "")
            kept.append(f"{_LONG_FORMS[name]}{value}")
        elif flag == "-std":
            kept.append(f"-std={next(flags, 'c++20')}")
        elif flag in _KEPT_WITH_VALUE:
            kept += [flag, next(flags, "")]
        elif flag in _VALUE_TAKERS:
            next(flags, None)
        elif flag in _KEPT_EXACTLY or (flag.startswith(_KEPT_PREFIXES) and not flag.startswith(_NEVER)):
            kept.append(flag)
    return [flag for flag in kept if flag]


def host_link_flags(flags: Sequence[str]) -> list[str]:
    """Returns the flags without CUDA's libraries, which a machine without a GPU may lack."""
    return [flag for flag in flags if not _CUDA_LIBRARY.fullmatch(flag)]


def link_flags(library: Path) -> list[str]:
    """Returns flags that link a module with a library made by `runtime_library`, and find it at run time."""
    return [str(library), f"-Wl,-rpath,{library.parent}", *_RACE_LINK_FLAGS]


def runtime_library(cache: Path, compiler: str = "g++") -> Path:
    """Returns the runtime as a shared library in `cache`. Builds it, which takes some seconds, unless it exists."""
    flags = [*_RUNTIME_FLAGS, f"-I{INCLUDE_DIR}"]
    return _build(cache, "cuda_on_cpu_runtime", RUNTIME_SOURCES, flags, _RUNTIME_LINK_FLAGS, compiler=compiler)


def allocator_library(
    cache: Path, includes: Iterable[Path], torch_lib: Path, compiler: str = "g++", *, std: str = "c++20"
) -> Path:
    """Returns the guard allocator for torch: a library that replaces c10's CPU allocator when it is loaded.

    `install` loads it. `includes` are torch's include folders, `torch_lib` the folder of libc10.so. Builds
    the library unless it exists.

    """
    runtime = runtime_library(cache, compiler)
    flags = [f"-std={std}", "-O2", "-fPIC", f"-I{INCLUDE_DIR}", *(f"-I{folder}" for folder in includes)]
    link = [
        *(f"-L{torch_lib}", "-lc10", f"-Wl,-rpath,{torch_lib}"),
        *(str(runtime), "-Wl,-rpath,$ORIGIN"),  # the runtime is in the same folder, wherever the cache is moved
    ]
    return _build(cache, "cuda_on_cpu_allocator", (_ALLOCATOR_SOURCE,), flags, link, compiler=compiler)


def _build(
    cache: Path, name: str, sources: Sequence[Path], flags: Sequence[str], link: Sequence[str], *, compiler: str
) -> Path:
    """Compiles a library whose name contains the hash of all inputs. Several processes may do so at once.

    The sources are compiled side by side, on all cores, because a run without a cache waits for the library.
    The hash does not depend on the locations of this package and the cache, because the name becomes part of the keys
    of libraries that are linked with it.
    """
    hashed = repr((compiler, *flags, *link)).replace(str(_HERE), "").replace(str(cache), "")
    digest = hashlib.sha256(hashed.encode())
    for path in sorted([*sources, *_RUNTIME.glob("*.h"), *INCLUDE_DIR.glob("cuda_on_cpu/*")]):
        digest.update(path.read_bytes())
    library = cache / f"lib{name}_{digest.hexdigest()[:16]}.so"
    if _is_intact(library):
        return library
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        made = Path(folder) / library.name
        objects = [str(made.with_name(f"{source.stem}.o")) for source in sources]
        commands = ([compiler, *flags, "-c", str(source), "-o", to]
                    for source, to in zip(sources, objects, strict=True))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(_run, commands))
        _run([compiler, "-shared", *objects, *link, "-o", str(made), f"-Wl,-soname,{library.name}"])
        _seal(made)
        os.replace(made, library)
    return library


def _seal(library: Path) -> None:
    """Appends the digest of a library to it, which loaders ignore."""
    digest = hashlib.sha256(library.read_bytes()).digest()
    with library.open("ab") as file:
        file.write(digest)


def _is_intact(library: Path) -> bool:
    """Whether a library exists and ends with the digest of the rest. A disk or a person may have damaged it."""
    try:
        data = library.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(data[:-_DIGEST_BYTES]).digest() == data[-_DIGEST_BYTES:]


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"a runtime library could not be built:\n{result.stderr}")
