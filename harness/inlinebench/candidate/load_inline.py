"""Replaces `load_inline` and `load` in a candidate: they ask the build service for a library and import it."""

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
"""Takes the fields of a build request and returns the path of the library. Raises RuntimeError if the build fails."""

refused: list[str] = []
"""What was wrong with the arguments of calls that were not accepted. A solution may have caught the exceptions."""
CUDA_SUFFIXES = (".cu", ".cuh")
"""Files with other suffixes are C++."""


class NotLinked(ImportError):
    """A library needs a symbol that neither its sources nor the libraries that it is linked with define.

    The linker accepts this, because the process that loads the library might define the symbol. Loading fails.
    """


def install(build: BuildLibrary) -> None:
    """Replaces PyTorch's `load_inline` and `load` by functions with the same signatures."""
    torch.utils.cpp_extension.load_inline = _Loader(build, torch.utils.cpp_extension.load_inline).load_inline
    torch.utils.cpp_extension.load = _Loader(build, torch.utils.cpp_extension.load).load


class _Loader:
    """Binds arguments to the original's signature, so that positions, names and defaults are PyTorch's."""

    def __init__(self, build: BuildLibrary, original: Callable[..., Any]) -> None:
        self._build, self._name, self._signature = build, original.__name__, inspect.signature(original)
        self._versions: dict[str, list[str]] = {}

    def _numbered(self, name: str, facts: str) -> str:
        """Appends `_v1` and so on to a name that other sources already use, as PyTorch does."""
        versions = self._versions.setdefault(name, [])
        if facts not in versions:
            versions.append(facts)
        number = versions.index(facts)
        return f"{name}_v{number}" if number else name

    def load_inline(self, *arguments: Any, **named: Any) -> types.ModuleType | str:
        """Works like `torch.utils.cpp_extension.load_inline`.

        Raises RuntimeError with the compiler's errors, or NotLinked.
        """
        given = self._bind(arguments, named)
        _refuse_sycl(given)
        return self._load(given, _texts(given["cpp_sources"]), _texts(given["cuda_sources"]),
                          functions=_functions(given["functions"]))

    def load(self, *arguments: Any, **named: Any) -> types.ModuleType | str:
        """Works like `torch.utils.cpp_extension.load`. Raises as `load_inline` does."""
        given = self._bind(arguments, named)
        _refuse_sycl(given)
        if given.get("is_standalone"):
            raise RuntimeError("is_standalone=True builds a program, which a solution cannot call; leave it out")
        paths = [Path(path).resolve() for path in _texts(given["sources"])]
        texts = {path: f'#line 1 "{path}"\n{path.read_text()}' for path in paths}
        cuda = [text for path, text in texts.items() if path.suffix in CUDA_SUFFIXES]
        cpp = [text for path, text in texts.items() if path.suffix not in CUDA_SUFFIXES]
        folders = list(dict.fromkeys(str(path.parent) for path in paths))
        given["extra_include_paths"] = [*_texts(given.get("extra_include_paths")), *folders]
        return self._load({**given, "no_implicit_headers": True}, cpp, cuda, functions=None)

    def _bind(self, arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*arguments, **named)
        except TypeError as error:
            refused.append(f"{self._name}() {error}")
            raise TypeError(refused[-1]) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _load(
        self, given: dict[str, Any], cpp: list[str], cuda: list[str], functions: dict[str, str] | None
    ) -> types.ModuleType | str:
        # PyTorch accepts dots, dashes and leading digits in names, but a C identifier cannot contain them.
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
    """Returns the value of `load`. Raises NotLinked if the dynamic loader misses a symbol."""
    try:
        return load()
    except (ImportError, OSError) as error:
        message = f"{error}\n{error.__cause__}"  # only the cause has the reason if torch.ops.load_library fails
        missing = re.search(rf"{re.escape(library)}: undefined symbol: ([^\s,]+)", message)
        if missing is None:
            raise
        name = torch._C._demangle(missing[1])  # type: ignore[attr-defined, unused-ignore]
        raise NotLinked(f"undefined symbol {name}: it is declared, but not defined in the sources or in a linked "
                        "library") from error


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
        raise RuntimeError("SYCL sources are not supported; use CUDA or C++")


def _texts(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(text) for text in value]


def _flags(value: str | Sequence[str] | None) -> list[str]:
    return [flag.strip() for flag in _texts(value) if flag.strip()]


def _with_architectures(flags: list[str]) -> list[str]:
    """Returns the flags, with those that PyTorch adds if the solution has set TORCH_CUDA_ARCH_LIST.

    Raises ValueError for an architecture that PyTorch does not know.
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
