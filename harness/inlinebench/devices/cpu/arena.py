"""The arena in host memory: an anonymous file (memfd) that both processes map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from typing import Any

import torch

from inlinebench.wire.memory_file import sealed_file


class CpuArena:
    """Shared memory of `size` bytes. The judge creates it."""

    def __init__(self, size: int) -> None:
        self._file = sealed_file("inlinebench-arena", max(size, 1))
        self.bytes = _map_file(self._file, max(size, 1))

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena, besides a descriptor."""
        return {"in_host_memory": True, "size": self.bytes.numel()}

    def descriptor(self) -> int:
        """Returns a new descriptor of the file. The caller closes it."""
        # Opened again, because candidates with the same open file would share its position and flags.
        return os.open(f"/proc/self/fd/{self._file}", os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._file)


def open_arena(exported: Mapping[str, Any], descriptor: int) -> torch.Tensor:
    """Maps the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""
    return _map_file(descriptor, exported["size"])


def _map_file(descriptor: int, size: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(descriptor, size), dtype=torch.uint8)
