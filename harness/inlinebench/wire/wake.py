"""Starts CUDA before torch does, beside what a process imports meanwhile."""

from __future__ import annotations

import ctypes
from threading import Thread

DRIVER = "libcuda.so.1"


def wake(device: str) -> None:
    """Has the driver start and make the context of a device (`auto`, `cuda`, `cuda:N`; nothing for `cpu`), in a thread:
    0.3 s on an H100 that torch then finds done.

    Nothing is said where that can't be done: torch meets the reason, and says it. What is forked from this process from
    now on can't use CUDA.
    """
    import torch  # which is there by now, and not when this module is imported

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
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)  # torch uses the same one
