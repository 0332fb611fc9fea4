"""Fixtures for tests of GPU builds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.compile.cache import CPU_LIBRARIES
from inlinebench.compile.precompiled import HOST_COMPILER
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cuda.target import GpuTarget

PATIENCE_S = 600


@pytest.fixture(scope="session")
def gpu_precompiled(cache: Path) -> Iterator[Path]:
    """The folder of headers that are precompiled for a GPU. Another test process may make them."""
    service = BuildService(cache, GpuTarget(("90",)), BuildSettings(PATIENCE_S))
    deadline = time.monotonic() + PATIENCE_S
    while not service.precompile():
        assert time.monotonic() < deadline, "no headers were precompiled"
        time.sleep(0.5)
    (found,) = (path.parent for path in (cache / CPU_LIBRARIES).glob(f"prefix-*/{HOST_COMPILER}"))
    yield found
    service.close()
