"""`load_inline` and `load` as solutions call them: they ask the build service for a library and import that."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import os
import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.utils.cpp_extension

T = TypeVar("T")
BuildLibrary = Callable[[dict[str, Any]], str]
"""Takes the facts of a build request and gives the path of the library; raises RuntimeError with the reason."""

CUDA_SUFFIXES = (".cu", ".cuh")


class NotLinked(ImportError):
    """A library needs what neither its sources nor the libraries that it is linked with define.

    The linker leaves that open, because the process that loads the library may have it; loading finds out.
    """


def install(build: BuildLibrary) -> None:
    """Puts functions with torch's own signatures in place of torch's."""
    torch.utils.cpp_extension.load_inline = _Loader(build, torch.utils.cpp_extension.load_inline).load_inline
    torch.utils.cpp_extension.load = _Loader(build, torch.utils.cpp_extension.load).load


class _Loader:
    """Binds arguments as the original's signature does, so that positions, names and defaults are torch's."""

    def __init__(self, build: BuildLibrary, original: Callable[..., Any]) -> None:
        self._build, self._signature = build, inspect.signature(original)
        self._versions: dict[str, list[str]] = {}

    def _numbered(self, name: str, facts: str) -> str:
        """As torch does it: another source under a name that is taken gets `_v1` and so on behind it."""
        versions = self._versions.setdefault(name, [])
        if facts not in versions:
            versions.append(facts)
        number = versions.index(facts)
        return f"{name}_v{number}" if number else name

    def load_inline(self, *arguments: Any, **named: Any) -> types.ModuleType | str:
        """As `torch.utils.cpp_extension.load_inline`. Raises RuntimeError with the compiler's errors, or NotLinked."""
        given = self._bind(arguments, named)
        _refuse_sycl(given)
        return self._load(given, _texts(given["cpp_sources"]), _texts(given["cuda_sources"]),
                          functions=_functions(given["functions"]))

    def load(self, *arguments: Any, **named: Any) -> types.ModuleType | str:
        """As `torch.utils.cpp_extension.load`: the sources are files."""
        given = self._bind(arguments, named)
        _refuse_sycl(given)
        if given.get("is_standalone"):
            raise RuntimeError("is_standalone builds a program, which a solution can't call")
        paths = [Path(path).resolve() for path in _texts(given["sources"])]
        texts = {path: f'#line 1 "{path}"\n{path.read_text()}' for path in paths}
        cuda = [text for path, text in texts.items() if path.suffix in CUDA_SUFFIXES]
        cpp = [text for path, text in texts.items() if path.suffix not in CUDA_SUFFIXES]
        folders = list(dict.fromkeys(str(path.parent) for path in paths))
        given["extra_include_paths"] = [*_texts(given.get("extra_include_paths")), *folders]
        return self._load({**given, "no_implicit_headers": True}, cpp, cuda, functions=None)

    def _bind(self, arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _load(
        self, given: dict[str, Any], cpp: list[str], cuda: list[str], functions: dict[str, str] | None
    ) -> types.ModuleType | str:
        # Dots, dashes and a digit in front are as fine in torch's names as they are impossible in a C identifier.
        name = re.sub(r"^(?=\d|$)|\W", "_", given["name"])
        facts = {
            "cpp_sources": cpp,
            "cuda_sources": cuda,
            "functions": functions,
            "extra_cflags": _flags(given.get("extra_cflags")),
            "extra_cuda_cflags": _with_architectures(_flags(given.get("extra_cuda_cflags"))),
            "extra_ldflags": _flags(given.get("extra_ldflags")),
            "extra_include_paths": _flags(given.get("extra_include_paths")),
            "with_cuda": given.get("with_cuda"),
            "is_python_module": bool(given.get("is_python_module", True)),
            "with_pytorch_error_handling": bool(given.get("with_pytorch_error_handling", True)),
            "no_implicit_headers": bool(given.get("no_implicit_headers", False)),
            "headers": {},
        }
        name = self._numbered(name, repr(facts))
        library = self._build({"name": name, **facts})
        if given.get("is_python_module", True):
            return _linked(library, lambda: _import(name, library))
        _linked(library, lambda: torch.ops.load_library(library))  # type: ignore[no-untyped-call, unused-ignore]
        return library


def _linked(library: str, load: Callable[[], T]) -> T:
    """What `load` gives. Raises NotLinked where the dynamic loader misses a name, as ImportError or OSError."""
    try:
        return load()
    except (ImportError, OSError) as error:
        said = f"{error}\n{error.__cause__}"  # torch.ops.load_library says itself only that it failed
        missing = re.search(rf"{re.escape(library)}: undefined symbol: ([^\s,]+)", said)
        if missing is None:
            raise
        name = torch._C._demangle(missing[1])  # type: ignore[attr-defined, unused-ignore]
        raise NotLinked(f"undefined symbol {name}: declared, but defined neither in the sources nor in a library that "
                        "they are linked with") from error


def _import(name: str, library: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, library, loader=importlib.machinery.ExtensionFileLoader(name, library)
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse_sycl(given: dict[str, Any]) -> None:
    if given.get("sycl_sources") or given.get("with_sycl"):
        raise RuntimeError("SYCL sources are not built here; write CUDA or C++")


def _texts(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(text) for text in value]


def _flags(value: str | Sequence[str] | None) -> list[str]:
    return [flag.strip() for flag in _texts(value) if flag.strip()]


def _with_architectures(flags: list[str]) -> list[str]:
    """The flags, with those that torch adds for TORCH_CUDA_ARCH_LIST where the solution has set that variable.

    Raises ValueError for an architecture that torch does not know.
    """
    if (os.environ.get("TORCH_CUDA_ARCH_LIST") or "native") == "native":
        return flags  # the build service knows the GPU
    return [*flags, *torch.utils.cpp_extension._get_cuda_arch_flags(flags)]


def _functions(value: str | Sequence[str] | dict[str, str] | None) -> dict[str, str] | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return {str(name): str(text) for name, text in value.items()}
    if isinstance(value, str | list | tuple):
        return {name: name for name in _texts(value)}
    raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(value)}")
