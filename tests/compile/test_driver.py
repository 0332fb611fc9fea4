"""The driver is asked in a process of its own; here a library of that name stands in for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inlinebench.compile import driver, toolchain

DRIVER = """
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int index) { *device = 7 + index; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? device + 2 : attribute == 76 ? 1 : -1;
  return 0;
}
"""


def stand_in(folder: Path, init: str = "0") -> Path:
    """A folder with a CUDA driver for two GPUs, of compute capabilities 9.1 and 10.1."""
    library = folder / "libcuda.so.1"
    subprocess.run([toolchain.cxx(), "-x", "c", "-shared", "-fPIC", f"-DINIT={init}", "-", "-o", str(library)],
                   input=DRIVER, text=True, check=True)
    return folder


def test_the_capability_of_each_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stand_in(tmp_path)))
    assert [driver.ask(0), driver.ask(1)] == ["91", "101"]
    with pytest.raises(driver.NoGpu, match="there are 2 GPUs here, counted from 0"):
        driver.ask(2)


@pytest.mark.parametrize(("init", "said"), [("100", "finds no GPU"), ("*(volatile int*)0", "ends whoever asks it")])
def test_a_driver_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, init: str, said: str) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stand_in(tmp_path, init)))
    with pytest.raises(driver.NoGpu, match=said):
        driver.ask(0)


@pytest.mark.gpu
def test_the_real_one_and_torch_agree() -> None:
    import torch

    assert driver.ask(0) == "{}{}".format(*torch.cuda.get_device_capability(0))
