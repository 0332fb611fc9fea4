"""Fixtures and hooks for all tests: a cache of built libraries for the session, and the skipping of GPU tests."""

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
# As judges have it. Otherwise threads of torch that have nothing to do take the cores from tests beside them: those of
# `numerics/` took six times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Examples have no deadline, because their time depends on the load of the machine. Each run tries others.
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=40)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a cache folder that all processes of the session share, so that each extension is built once.

    It is the folder that INLINEBENCH_CACHE names: several sessions, such as those of .ci/run, then build once, too.
    Without one it is new, and INLINEBENCH_CACHE is set, for the tests that name no cache to what they run.
    """
    if named := os.environ.get("INLINEBENCH_CACHE"):
        return Path(named)
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(exist_ok=True)
    os.environ["INLINEBENCH_CACHE"] = str(folder)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests marked `gpu` and `nvcc` if they cannot run.

    If INLINEBENCH_EXPECT_NVCC is set, tests marked `nvcc` are not skipped, so they fail without nvcc.
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
    """Returns why tests that need nvcc cannot run, or ""."""
    try:
        toolchain.nvcc()
    except toolchain.MissingTool as error:
        return str(error)
    return ""


def _missing_for_gpu() -> str:
    """Returns why GPU tests cannot run, or "". Uses the driver directly, because importing torch takes seconds."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no CUDA device"
    return _missing_nvcc()
