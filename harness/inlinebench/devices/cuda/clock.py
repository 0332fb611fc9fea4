"""The clock for a GPU: `gpu_clock.cu`, called through functions that are bound before any solution is imported."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.timing.call import Sample

HELD_MS = 500.0
"""How long a held call waits for its release, in ms. The judge needs a few milliseconds."""


class ClockError(RuntimeError):
    """A CUDA call of the clock failed. After a kernel fault, every CUDA call of the process fails."""


class GpuClock:
    """Times calls on one device. A process has one instance; its flags are in `page`.

    Every method raises ClockError if CUDA reports an error, including errors of earlier work.
    """

    def __init__(self, library: Path, device: int, page: FlagPage) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.clock_error.restype = ctypes.c_char_p
        self._library.clock_block.argtypes = [ctypes.c_double]
        self._library.clock_open.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
        self._library.clock_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self._library.clock_touch.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._library.clock_move.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self._library.clock_stand_in.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        self._library.clock_hold.argtypes = [ctypes.c_double]
        self._library.clock_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
        self._library.clock_unmap.argtypes = [ctypes.c_void_p]
        self._library.clock_release_other.argtypes = [ctypes.c_void_p]
        self._blocking_wanted = False
        self._mapped: dict[int, tuple[int, int]] = {}
        """Addresses of the flags of other processes, and how often they were mapped, by their addresses there."""
        self._page = page  # the GPU writes to it for as long as this process lives
        self._check(self._library.clock_open(device, page.address, page.bytes))

    def touch(self, address: int, size: int) -> None:
        self._check(self._library.clock_touch(address, size))

    def null(self, blocks_an_sm: int) -> None:
        self._check(self._library.clock_null(blocks_an_sm))

    def flush(self) -> None:
        self._blocking_wanted = False
        self._check(self._library.clock_flush())

    def sweep(self) -> None:
        self._check(self._library.clock_sweep())

    def block(self, limit_ms: float) -> None:
        self._blocking_wanted = True
        self._check(self._library.clock_block(limit_ms))

    def start(self) -> None:
        self._check(self._library.clock_start())

    def mark(self) -> None:
        self._check(self._library.clock_mark())

    def stop(self) -> None:
        self._check(self._library.clock_stop())

    def copy(self, target: int, source: int, size: int) -> None:
        self._check(self._library.clock_copy(target, source, size))

    def done(self) -> None:
        self._check(self._library.clock_done())

    def release(self) -> None:
        self._library.clock_release()

    def drain(self) -> Sample:
        device_ms, forward_ms = ctypes.c_float(), ctypes.c_float()
        drain_ms, ran_out = ctypes.c_double(), ctypes.c_int()
        self._check(self._library.clock_drain(ctypes.byref(device_ms), ctypes.byref(forward_ms), ctypes.byref(drain_ms),
                                              ctypes.byref(ran_out)))
        return Sample(device_ms.value, drain_ms.value, blocked=self._blocking_wanted and not ran_out.value,
                      forward_ms=None if forward_ms.value < 0 else forward_ms.value)

    def synchronize(self) -> None:
        """Waits for the device."""
        self._check(self._library.clock_synchronize())

    def wait_for_release(self, announce: Callable[[], None]) -> None:
        """Waits on the host until another process sets the flag that releases a blocking kernel, at most `HELD_MS`.

        Calls `announce` when it begins to wait.
        """
        self._library.clock_reset()
        announce()
        self._page.wait_until_released(HELD_MS / 1e3)

    def hold(self) -> None:
        """Queues a kernel that holds up the default stream until another process releases it, at most `HELD_MS`."""
        self._check(self._library.clock_hold(HELD_MS))

    def map(self, page: FlagPage) -> int:
        """Maps the flags of another process, and returns their address for `release_other`. It may be repeated."""
        flags, count = self._mapped.get(page.address, (0, 0))
        if count == 0:
            mapped = ctypes.c_void_p()
            self._check(self._library.clock_map(page.address, page.bytes, ctypes.byref(mapped)))
            assert mapped.value is not None
            flags = mapped.value
        self._mapped[page.address] = flags, count + 1
        return flags

    def unmap(self, page: FlagPage) -> None:
        """Reverses one call of `map`. CUDA allows only one mapping, so the last one unmaps."""
        flags, count = self._mapped.pop(page.address)
        if count > 1:
            self._mapped[page.address] = flags, count - 1
        else:
            self._check(self._library.clock_unmap(page.address))

    def release_other(self, flags: int) -> None:
        """Queues the release of what another process holds."""
        self._check(self._library.clock_release_other(flags))

    def gather(self) -> None:
        """Queues a short wait, so that what the host queues after it runs without a gap."""
        self._check(self._library.clock_gather())

    def stamp_begin(self) -> None:
        """Queues the stamp of the beginning of a held call, by the GPU's own time."""
        self._check(self._library.clock_stamp(0))

    def stamp_end(self) -> None:
        """Queues the stamp of the end of a held call."""
        self._check(self._library.clock_stamp(1))

    def between_stamps(self) -> float:
        """Waits for the device and returns the time between the two stamps in ms."""
        ms = ctypes.c_double()
        self._check(self._library.clock_between(ctypes.byref(ms)))
        return ms.value

    def move(self, target: int, source: int, size: int) -> None:
        """Queues a kernel that copies bytes from one address of the device to another."""
        self._check(self._library.clock_move(target, source, size))

    def stand_in(self, inputs: int, input_bytes: int, outputs: int, output_bytes: int) -> None:
        """Queues a kernel that reads and writes memory at two addresses. All sizes are multiples of 16."""
        self._check(self._library.clock_stand_in(inputs, input_bytes, outputs, output_bytes))

    def _check(self, status: int) -> None:
        if status:
            raise ClockError(self._library.clock_error(status).decode())
