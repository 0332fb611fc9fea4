"""Fixtures for the tests of CUDA on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which everything is built once for all tests."""
    return tmp_path_factory.mktemp("cuda_on_cpu")
