"""CUDA starts in a thread. The tests replace the driver by a library of the same name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inlinebench.compile import toolchain

pytestmark = pytest.mark.slow  # each test starts a Python with torch

DRIVER = """
#include <stdio.h>
int cuInit(unsigned flags) { puts("init"); return fflush(stdout) + INIT; }
int cuDeviceGet(int* device, int index) { *device = 7 + index; return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { printf("context of %d\\n", device); return fflush(stdout); }
"""
WAKE = """
import sys, threading, torch
torch.version.cuda = sys.argv[1] or None
from inlinebench.devices.registry import wake
for device in sys.argv[2:]:
    print(device, flush=True)
    wake(device)
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()
"""


def output(*devices: str, cuda: str = "13.0", driver: Path | None = None) -> list[str]:
    """Returns the driver's calls for some devices, with a torch that is built for a CUDA version or for none ("")."""
    environment = {**os.environ, **({} if driver is None else {"LD_LIBRARY_PATH": str(driver)})}
    done = subprocess.run([sys.executable, "-c", WAKE, cuda, *devices], capture_output=True, text=True, check=True,
                          env=environment)
    assert not done.stderr
    return done.stdout.splitlines()


def fake_driver(folder: Path, init: int = 0) -> Path:
    subprocess.run([toolchain.cxx(), "-x", "c", "-shared", "-fPIC", f"-DINIT={init}", "-", "-o",
                    str(folder / "libcuda.so.1")], input=DRIVER, text=True, check=True)
    return folder


def test_the_context_of_the_device_is_created(tmp_path: Path) -> None:
    assert output("auto", "cpu", "cuda", "cuda:2", "cuda:x", driver=fake_driver(tmp_path)) == [
        "auto", "init", "context of 7", "cpu", "cuda", "init", "context of 7", "cuda:2", "init", "context of 9",
        "cuda:x"]


def test_no_context_is_created_without_a_gpu(tmp_path: Path) -> None:
    assert output("auto", driver=fake_driver(tmp_path, init=100)) == ["auto", "init"]


def test_the_driver_is_not_loaded_by_a_torch_without_cuda(tmp_path: Path) -> None:
    assert output("cuda", cuda="", driver=fake_driver(tmp_path)) == ["cuda"]


def test_a_missing_driver_is_ignored() -> None:
    assert output("cuda") == ["cuda"]
