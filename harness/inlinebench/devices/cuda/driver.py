"""Gets the compute capability of a GPU from the CUDA driver: `python -m inlinebench.devices.cuda.driver 0` prints `90`.

Runs in a separate process, because a loaded driver cannot be unloaded. It only queries the number of GPUs and two
attributes, and creates no context on any GPU.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

from inlinebench.wire.own_python import own_python

PATIENCE_S = 60.0
MAJOR, MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""


class NoGpu(Exception):
    """The GPU does not exist. The message says why."""


def ask(index: int) -> str:
    """Returns the compute capability of a GPU as nvcc names it (`90`). Raises NoGpu."""
    environment = {**os.environ, **own_python()}
    try:
        done = subprocess.run([sys.executable, "-m", "inlinebench.devices.cuda.driver", str(index)], env=environment,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoGpu(f"the CUDA driver did not respond within {PATIENCE_S:g} s") from error
    if done.returncode or not done.stdout.strip().isdecimal():
        raise NoGpu(done.stderr.strip().rpartition("\n")[2] or "the CUDA driver crashed when it was queried")
    return done.stdout.strip()


def capability(index: int) -> str:
    """Does the same as `ask` in this process, where the driver stays loaded. Raises NoGpu."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGpu("no CUDA driver is installed on this machine") from error
    count, device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        raise NoGpu("the CUDA driver finds no GPU on this machine")
    if index >= count.value:
        raise NoGpu(f"this machine has {count.value} GPUs, numbered from 0")
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), MINOR, device)
    return f"{major.value}{minor.value}"


if __name__ == "__main__":
    try:
        print(capability(int(sys.argv[1])))
    except NoGpu as missing:
        sys.exit(str(missing))
