"""Starts CUDA in a thread, while the process imports other modules."""

from __future__ import annotations

import ctypes
from threading import Thread

import torch

DRIVER = "libcuda.so.1"


def wake(index: int) -> None:
    """Makes the driver create the context of a device in a thread.

    This takes 0.3 s on an H100, which torch then saves. Errors are ignored, because torch reports them later. Processes
    forked after this call cannot use CUDA.
    """
    if torch.version.cuda is not None:
        Thread(target=_start, args=(index,), daemon=True).start()


def _start(index: int) -> None:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), index) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)  # torch uses the same context
