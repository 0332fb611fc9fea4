"""The clock for a GPU: `gpu_clock.cu`, called through functions that are bound before any solution is imported."""

from __future__ import annotations

import ctypes
from pathlib import Path

from inlinebench.timing.call import Sample
from inlinebench.timing.flags import FlagPage


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
        self._blocking_wanted = False
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

    def stop(self) -> None:
        self._check(self._library.clock_stop())

    def copy(self, target: int, source: int, size: int) -> None:
        self._check(self._library.clock_copy(target, source, size))

    def done(self) -> None:
        self._check(self._library.clock_done())

    def release(self) -> None:
        self._library.clock_release()

    def drain(self) -> Sample:
        device_ms, drain_ms, ran_out = ctypes.c_float(), ctypes.c_double(), ctypes.c_int()
        self._check(self._library.clock_drain(ctypes.byref(device_ms), ctypes.byref(drain_ms), ctypes.byref(ran_out)))
        return Sample(device_ms.value, drain_ms.value, blocked=self._blocking_wanted and not ran_out.value)

    def _check(self, status: int) -> None:
        if status:
            raise ClockError(self._library.clock_error(status).decode())
