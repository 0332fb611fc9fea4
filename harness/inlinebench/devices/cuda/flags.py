"""The flag page shared by the host and the blocking kernel: `struct Flags` of `gpu_clock.cu` in Python.

The page is a memory file, so that the judge can release a candidate's blocking kernel and see the end of the work
behind it by reading and writing memory. A message between the processes would take tens of microseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time

from inlinebench.wire.memory_file import sealed_file

PATIENCE_S = 10.0
"""How long to wait for the GPU's flag that a call or a loop is done, in seconds."""


class _Flags(ctypes.Structure):
    _fields_ = (("release", ctypes.c_int), ("ran_out", ctypes.c_int), ("done", ctypes.c_int))


class FlagPage:
    """One page of shared memory. With `fd`, maps the page of another process; without, creates a new one."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = sealed_file("inlinebench-flags", mmap.PAGESIZE) if fd is None else fd
        self._memory = mmap.mmap(self.fd, mmap.PAGESIZE)
        self._flags = _Flags.from_buffer(self._memory)
        self.address, self.bytes = ctypes.addressof(self._flags), mmap.PAGESIZE

    def close(self) -> None:
        """Closes the descriptor. The memory stays mapped as long as it is referenced."""
        os.close(self.fd)

    def release(self) -> None:
        """Ends the blocking kernel."""
        self._flags.release = 1

    def wait_until_released(self, seconds: float) -> bool:
        """Spins until `release` was called, in any process. Returns False after `seconds`."""
        return self._wait("release", seconds)

    def wait_until_done(self, seconds: float = PATIENCE_S) -> bool:
        """Spins until the GPU sets the `done` flag. Returns False after `seconds`."""
        return self._wait("done", seconds)

    def _wait(self, flag: str, seconds: float) -> bool:
        flags, deadline = self._flags, time.perf_counter() + seconds
        while not getattr(flags, flag):
            if time.perf_counter() > deadline:
                return False
        return True
