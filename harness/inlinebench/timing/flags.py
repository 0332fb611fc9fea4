"""The page of flags between a host and a hold kernel: `struct Flags` of `gpu_clock.cu`, seen from Python.

The page is a memory file, so that the judge can release a candidate's hold, and see the end of the work behind it, by
reading and writing memory: a message between the processes would cost tens of microseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time

from inlinebench.wire.memory_file import sealed_file

BEATS = 2
"""How often a hold has to be seen to count: once might have been on its way for longer."""


class _Flags(ctypes.Structure):
    _fields_ = (("release", ctypes.c_int), ("ran_out", ctypes.c_int), ("done", ctypes.c_int),
                ("beat", ctypes.c_int))


class FlagPage:
    """One page of shared memory; given a descriptor, another process's page."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = sealed_file("inlinebench-flags", mmap.PAGESIZE) if fd is None else fd
        self._memory = mmap.mmap(self.fd, mmap.PAGESIZE)
        self._flags = _Flags.from_buffer(self._memory)
        self.address, self.bytes = ctypes.addressof(self._flags), mmap.PAGESIZE

    def close(self) -> None:
        """Closes the descriptor; the memory stays mapped as long as something looks at it."""
        os.close(self.fd)

    def release(self) -> None:
        """Lets the GPU go."""
        self._flags.release = 1

    @property
    def ran_out(self) -> bool:
        """Whether the last hold reached its limit before it was released."""
        return bool(self._flags.ran_out)

    def wait_until_running(self, seconds: float) -> bool:
        """Spins until a hold is seen to run; False after so many seconds.

        A GPU that did another process's work takes some hundred microseconds to go back to a hold that it preempted.
        """
        flags, deadline = self._flags, time.perf_counter() + seconds
        for _ in range(BEATS):
            seen = flags.beat
            while flags.beat == seen:
                if time.perf_counter() > deadline:
                    return False
        return True

    def wait_until_done(self, seconds: float) -> int | None:
        """Spins until the GPU says that it is done; `time.perf_counter_ns` then, or None after so many seconds."""
        flags, now = self._flags, time.perf_counter_ns
        deadline = now() + int(seconds * 1e9)
        while not flags.done:
            if now() > deadline:
                return None
        return now()
