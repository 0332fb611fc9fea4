"""Builds unmodified CUDA source with the C++ compiler and runs it on the CPU, to check correctness without a GPU.

Translate a source with `translate`, compile it with `SOURCE_FLAGS` (and `RACE_FLAGS`) against `INCLUDE_DIR`, and link
it with `link_flags(runtime_library(folder))`. `Runtime` tells what the launches of a process have found. In Python,
`install` and `cuda_is_cpu` make "cuda" mean the CPU; only these two need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import Malformed, Unsupported
from .running import Runtime
from .toolchain import (
    INCLUDE_DIR,
    RACE_FLAGS,
    SOURCE_FLAGS,
    allocator_library,
    host_flags,
    host_link_flags,
    link_flags,
    runtime_library,
)
from .translation import translate

if TYPE_CHECKING:
    from .python_side import cuda_is_cpu, install

__all__ = [
    "INCLUDE_DIR",
    "RACE_FLAGS",
    "SOURCE_FLAGS",
    "Malformed",
    "Runtime",
    "Unsupported",
    "allocator_library",
    "cuda_is_cpu",
    "host_flags",
    "host_link_flags",
    "install",
    "link_flags",
    "runtime_library",
    "translate",
]


def __getattr__(name: str) -> Any:
    """Imports torch only for the names that need it."""
    if name in ("cuda_is_cpu", "install"):
        from . import python_side

        return getattr(python_side, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
