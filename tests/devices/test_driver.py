"""Querying the CUDA driver in a separate process. The tests replace the driver by a library of the same name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inlinebench.compile import toolchain
from inlinebench.devices.cuda import driver

DRIVER = """
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int index) { *device = 7 + index; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? device + 2 : attribute == 76 ? 1 : -1;
  return 0;
}
"""


def fake_driver(folder: Path, init: str = "0") -> Path:
    """Puts a CUDA driver for two GPUs, of compute capabilities 9.1 and 10.1, into a folder."""
    library = folder / "libcuda.so.1"
    subprocess.run([toolchain.cxx(), "-x", "c", "-shared", "-fPIC", f"-DINIT={init}", "-", "-o", str(library)],
                   input=DRIVER, text=True, check=True)
    return folder


def test_each_gpu_has_its_compute_capability(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver(tmp_path)))
    assert [driver.ask(0), driver.ask(1)] == ["91", "101"]
    with pytest.raises(driver.NoGpu, match="this machine has 2 GPUs, numbered from 0"):
        driver.ask(2)


@pytest.mark.parametrize(("init", "message"), [("100", "finds no GPU"), ("*(volatile int*)0", "crashed")])
def test_a_failing_driver_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, init: str, message: str) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_driver(tmp_path, init)))
    with pytest.raises(driver.NoGpu, match=message):
        driver.ask(0)


@pytest.mark.gpu
def test_the_real_driver_agrees_with_torch() -> None:
    import torch

    assert driver.ask(0) == "{}{}".format(*torch.cuda.get_device_capability(0))
