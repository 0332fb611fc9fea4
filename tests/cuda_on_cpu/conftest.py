"""Fixtures for the tests of CUDA on the CPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cuda_on_cpu import runtime_library


@pytest.fixture(scope="session")
def build_folder(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which everything is built once for all tests of a process.

    The runtime library, which takes longest, is built in the session's cache.
    """
    folder = tmp_path_factory.mktemp("cuda_on_cpu")
    shutil.copy(runtime_library(cache / "cuda_on_cpu"), folder)
    return folder
