"""The request to the build service, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from inlinebench.results.result import Verdict


class BadRequest(ValueError):
    """A build request is malformed."""


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of `torch.utils.cpp_extension.load_inline`, with sources and flags as tuples of strings.

    Raises BadRequest if the name is not an identifier, or if a header is outside the folders of the build.
    """

    name: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: Mapping[str, str] | None = None
    """Docstrings by function name. None means that the source has its own PYBIND11_MODULE."""
    extra_cflags: tuple[str, ...] = ()
    extra_cuda_cflags: tuple[str, ...] = ()
    extra_ldflags: tuple[str, ...] = ()
    extra_include_paths: tuple[str, ...] = ()
    with_cuda: bool | None = None
    is_python_module: bool = True
    with_pytorch_error_handling: bool = True
    no_implicit_headers: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    """Texts of included files, by path relative to the build folder. Each path has a folder in it (`own/a.h`)."""
    readable: tuple[str, ...] = ()
    """Paths that the compilers may read: those that the solution is given. The scheduler sets them, not a candidate."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise BadRequest(f"the extension name {self.name[:80]!r} is not an identifier")
        for name in self.headers:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or "\0" in name:
                raise BadRequest(f"the header {name[:80]!r} is not in a subfolder of the build")

    @property
    def uses_cuda(self) -> bool:
        return bool(self.cuda_sources) or bool(self.with_cuda)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the author: sources, and headers that they include."""
        return (*self.cpp_sources, *self.cuda_sources, *self.headers.values())

    def to_json(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in _sent()}
        return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}

    @property
    def names_readable(self) -> bool:
        """Whether a flag, an include path or a text names a readable path. Else compilers cannot find the files there.
        """
        flags = (*self.extra_cflags, *self.extra_cuda_cflags, *self.extra_ldflags, *self.extra_include_paths)
        return any(path in text for path in self.readable for text in (*flags, *self.texts))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BuildRequest:
        """Returns the request in a frame from a candidate. Raises BadRequest if it is malformed."""
        texts = ("cpp_sources", "cuda_sources", "extra_cflags", "extra_cuda_cflags", "extra_ldflags",
                 "extra_include_paths")
        switches = ("is_python_module", "with_pytorch_error_handling", "no_implicit_headers")
        if set(data) != _sent() or not isinstance(data["name"], str):
            raise BadRequest("a build request must have exactly the fields of BuildRequest")
        for name in texts:
            if not isinstance(data[name], list) or not all(isinstance(item, str) for item in data[name]):
                raise BadRequest(f"{name} must be a list of strings")
        functions = data["functions"]
        if functions is not None and not (
            isinstance(functions, dict) and all(isinstance(text, str) for text in functions.values())
        ):
            raise BadRequest("functions must map names to docstrings")
        headers = data["headers"]
        if not isinstance(headers, dict) or not all(isinstance(text, str) for text in headers.values()):
            raise BadRequest("headers must map names to texts")
        if not all(isinstance(data[name], bool) for name in switches) or data["with_cuda"] not in (None, True, False):
            raise BadRequest("switches must be true or false")
        tuples = {name: tuple(data[name]) for name in texts}
        return cls(**{**data, **tuples})


def _sent() -> set[str]:
    """Returns the names of the fields that a candidate sends."""
    return {each.name for each in fields(BuildRequest)} - {"readable"}


@dataclass(frozen=True)
class BuildOutcome:
    """The outcome of a build: either a library or the reason for its failure. Raises ValueError for both or neither."""

    library: Path | None
    """The path of the built library; None if the build failed."""
    reason: str = ""
    """Why the build failed."""
    log: str = ""
    """The output of the build tools."""
    seconds: float = 0.0
    """The time that the build took, in seconds."""
    cached: bool = False
    """Whether the library was in the cache."""
    headers: str = "full"
    """The PyTorch headers that were used: `slim`, or `full` and the reason."""
    verdict: Verdict = Verdict.BUILD_FAILED
    """The verdict on a solution that needs the library, if the build failed. It is `timed_out` above the time limit,
    `skipped` for a source that cannot run on this device at all, and `internal_error` if the machine is at fault."""
    at: tuple[str, int] | None = None
    """The source text, and the line in it (from 1), that the reason is about."""

    def __post_init__(self) -> None:
        if (self.library is None) != bool(self.reason):
            raise ValueError("a build has either a library or a reason")


@dataclass(frozen=True)
class RuntimeLibraries:
    """The harness's own libraries for a device. A library of the other kind of device is None."""

    clock: Path | None = None
    """The clock of a GPU."""
    trace: Path | None = None
    """The tracer of a GPU's kernels through CUPTI; None where CUPTI's headers are missing."""
    runtime: Path | None = None
    """The runtime that executes kernels on the CPU."""
    allocator: Path | None = None
    """The allocator that guards tensors' memory on the CPU."""

    def to_json(self) -> dict[str, str]:
        """Returns the paths of the libraries that exist, by name."""
        return {name: str(path) for name, path in vars(self).items() if path is not None}


class NoRuntimeLibraries(Exception):
    """The harness's own libraries could not be built; the text says why."""
