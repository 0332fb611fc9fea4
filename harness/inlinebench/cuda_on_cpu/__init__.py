"""Builds unmodified CUDA source with the C++ compiler and runs it on the CPU, to check correctness without a GPU."""

from .errors import Malformed, Unsupported
from .toolchain import (
    INCLUDE_DIR,
    RACE_FLAGS,
    RUNTIME_SOURCES,
    SOURCE_FLAGS,
    allocator_library,
    host_flags,
    host_link_flags,
    link_flags,
    runtime_library,
)
from .translation import translate

__all__ = [
    "INCLUDE_DIR",
    "RACE_FLAGS",
    "RUNTIME_SOURCES",
    "SOURCE_FLAGS",
    "Malformed",
    "Unsupported",
    "allocator_library",
    "host_flags",
    "host_link_flags",
    "link_flags",
    "runtime_library",
    "translate",
]
