"""Files in memory that processes share, and whose size none of them can change."""

from __future__ import annotations

import fcntl
import os

_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1033, 1, 2, 4


def sealed_file(name: str, size: int) -> int:
    """The descriptor of a new file of so many bytes.

    Shrunk by another process it would kill whoever looks at what is gone, and grown it would keep things behind the
    end for later. Raises OSError.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
    return descriptor
