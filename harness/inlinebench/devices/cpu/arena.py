"""The arena in host memory: an anonymous file (memfd) that both processes map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from typing import Any

import torch

from inlinebench.wire.memory_file import sealed_file


class CpuArena:
    """Shared memory of `size` bytes. The judge creates it, and the candidate inherits the descriptor."""

    def __init__(self, size: int) -> None:
        self.fd = sealed_file("inlinebench-arena", max(size, 1))
        self.bytes = _map_file(self.fd, max(size, 1))

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena."""
        return {"in_host_memory": True, "size": self.bytes.numel()}

    def close(self) -> None:
        os.close(self.fd)


def open_arena(exported: Mapping[str, Any], fd: int) -> torch.Tensor:
    """Maps the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""
    return _map_file(fd, exported["size"])


def _map_file(fd: int, size: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)
