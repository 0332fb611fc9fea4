"""Starts CUDA in a thread, while the process imports other modules."""

from __future__ import annotations

import ctypes
from threading import Thread

DRIVER = "libcuda.so.1"


def wake(device: str) -> None:
    """Makes the driver create the context of a device (`auto`, `cuda`, `cuda:N`; `cpu`: does nothing) in a thread.

    This takes 0.3 s on an H100, which torch then saves. Errors are ignored, because torch reports them later. Processes
    forked after this call cannot use CUDA.
    """
    import torch  # the caller has imported torch by now, but not yet when it imports this module

    number = device.partition(":")[2] or "0"
    if device != "cpu" and torch.version.cuda is not None and number.isdecimal():
        Thread(target=_start, args=(int(number),), daemon=True).start()


def _start(index: int) -> None:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), index) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)  # torch uses the same context
