"""What all tests share: one cache of built libraries for the whole session, and the choice of GPU tests."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from inlinebench.compile import toolchain

from .running import PYTHONPATH

os.environ["PYTHONPATH"] = PYTHONPATH

# What else a machine does decides how long an example takes; nothing here is about that.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which each extension of the test session is built once, whichever of its processes asks."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(exist_ok=True)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests marked `gpu` and `nvcc` where they cannot run.

    Where INLINEBENCH_EXPECT_NVCC is set, the tests marked `nvcc` run all the same, and fail without it.
    """
    _skip(items, "gpu", _missing_for_gpu)
    if not os.environ.get("INLINEBENCH_EXPECT_NVCC"):
        _skip(items, "nvcc", _missing_nvcc)


def _skip(items: list[pytest.Item], marker: str, missing: Callable[[], str]) -> None:
    marked = [item for item in items if item.get_closest_marker(marker)]
    if marked and (reason := missing()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def _missing_nvcc() -> str:
    """What a test that needs nvcc lacks here. Empty if nothing."""
    try:
        toolchain.nvcc()
    except toolchain.MissingTool as error:
        return str(error)
    return ""


def _missing_for_gpu() -> str:
    """What a GPU test lacks here, asked of the driver itself: importing torch takes seconds. Empty if nothing."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no CUDA device"
    return _missing_nvcc()
