"""Asks CUDA's driver which GPU is there, without starting it: `python -m inlinebench.compile.driver 0` prints `90`.

In a process of its own, because a driver that is loaded stays. Nothing but a count and two numbers is asked for: no
context is made on any GPU.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 60.0
MAJOR, MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""


class NoGpu(Exception):
    """There is no such GPU; the text says why."""


def ask(index: int) -> str:
    """The compute capability of a GPU as nvcc writes it (`90`). Raises NoGpu."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    try:
        done = subprocess.run([sys.executable, "-m", "inlinebench.compile.driver", str(index)], env=environment,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoGpu(f"the CUDA driver doesn't answer within {PATIENCE_S:g} s") from error
    if done.returncode or not done.stdout.strip().isdecimal():
        raise NoGpu(done.stderr.strip().rpartition("\n")[2] or "the CUDA driver ends whoever asks it")
    return done.stdout.strip()


def capability(index: int) -> str:
    """The same, by a driver that stays loaded in this process. Raises NoGpu."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGpu("there is no CUDA driver here") from error
    count, device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        raise NoGpu("the CUDA driver finds no GPU here")
    if index >= count.value:
        raise NoGpu(f"there are {count.value} GPUs here, counted from 0")
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), MINOR, device)
    return f"{major.value}{minor.value}"


if __name__ == "__main__":
    try:
        print(capability(int(sys.argv[1])))
    except NoGpu as missing:
        sys.exit(str(missing))
