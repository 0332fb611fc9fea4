"""Memory files that processes share, and whose size no process can change."""

from __future__ import annotations

import fcntl
import os

_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1033, 1, 2, 4


def sealed_file(name: str, size: int) -> int:
    """Creates a memory file of `size` bytes and returns its descriptor.

    If another process shrank the file, access to the removed part would kill the reader. If it grew the file, it could
    store data beyond the end. Raises OSError.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
    return descriptor
