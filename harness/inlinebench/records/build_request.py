"""What is asked of the build service, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any


class BadRequest(ValueError):
    """A build request that has not the form of one."""


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of `load_inline`, with sources and flags as tuples of strings.

    `functions` maps function names to docstrings; None means that the source brings its own PYBIND11_MODULE. `headers`
    are texts of files that sources include, by names relative to where the build runs, in a folder there.
    """

    name: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: Mapping[str, str] | None = None
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    extra_include_paths: tuple[str, ...] = ()
    with_cuda: bool | None = None
    is_python_module: bool = True
    with_pytorch_error_handling: bool = True
    no_implicit_headers: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise BadRequest(f"the extension name {self.name[:80]!r} is no identifier")
        for name in self.headers:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or "\0" in name:
                raise BadRequest(f"the header {name[:80]!r} doesn't lie in a folder of the build")

    @property
    def uses_cuda(self) -> bool:
        return bool(self.cuda_sources) or bool(self.with_cuda)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that the author wrote: sources, and headers that they include."""
        return (*self.cpp_sources, *self.cuda_sources, *self.headers.values())

    def to_json(self) -> dict[str, Any]:
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BuildRequest:
        """The request in a frame that a candidate sent. Raises BadRequest for anything that isn't of this form."""
        texts = ("cpp_sources", "cuda_sources", "extra_cflags", "extra_cuda_cflags", "extra_ldflags",
                 "extra_include_paths")
        switches = ("is_python_module", "with_pytorch_error_handling", "no_implicit_headers")
        if set(data) != {each.name for each in fields(cls)} or not isinstance(data["name"], str):
            raise BadRequest("a build request has exactly the fields of BuildRequest")
        for name in texts:
            if not isinstance(data[name], list) or not all(isinstance(item, str) for item in data[name]):
                raise BadRequest(f"{name} is a list of strings")
        functions = data["functions"]
        if functions is not None and not (
            isinstance(functions, dict) and all(isinstance(text, str) for text in functions.values())
        ):
            raise BadRequest("functions maps names to docstrings")
        headers = data["headers"]
        if not isinstance(headers, dict) or not all(isinstance(text, str) for text in headers.values()):
            raise BadRequest("headers maps names to texts")
        if not all(isinstance(data[name], bool) for name in switches) or data["with_cuda"] not in (None, True, False):
            raise BadRequest("switches are true or false")
        tuples = {name: tuple(data[name]) for name in texts}
        return cls(**{**data, **tuples})


@dataclass(frozen=True)
class BuildOutcome:
    """A library, or the reason why there is none with the whole log. `seconds` is the time that the build took."""

    library: Path | None
    reason: str = ""
    log: str = ""
    seconds: float = 0.0
    cached: bool = False
    headers: str = "full"
    timed_out: bool = False
    unsupported: bool = False
    """The source can't run on this device at all: the evaluation is skipped, not failed."""
    at: tuple[str, int] | None = None
    """The source text and the line in it (from 1) that the reason is about."""

    def __post_init__(self) -> None:
        if (self.library is None) != bool(self.reason):
            raise ValueError("a build has either a library or a reason")


@dataclass(frozen=True)
class RuntimeLibraries:
    """The harness's own libraries for a device: the clock of a GPU, and what asks CUPTI which kernels ran there (None
    where its headers are missing); on the CPU what runs kernels and what guards the memory of tensors."""

    clock: Path | None = None
    trace: Path | None = None
    runtime: Path | None = None
    allocator: Path | None = None

    def to_json(self) -> dict[str, str]:
        """The libraries that there are, by name."""
        return {name: str(path) for name, path in vars(self).items() if path is not None}


class NoRuntimeLibraries(Exception):
    """The harness's own libraries couldn't be built; the text says why."""
