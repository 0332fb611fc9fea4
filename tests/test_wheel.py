"""The wheel: its contents, and that it runs in an environment where nothing else is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from .running import ROOT

PROBLEM = "N = 4\n"
TYPES = "import inlinebench; from inlinebench import Result, Verdict; print(Verdict.PASSED, inlinebench.__file__)"


def pip(*arguments: str | Path) -> None:
    """Runs pip without PYTHONPATH, because pip would take this checkout for an installed package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, capture_output=True, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel of this checkout with the installed build tools."""
    # A copy, because building leaves files behind.
    folder, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "harness", copy / "harness", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, copy)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a virtual environment that contains only the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    pip("--python", folder / "bin" / "python", "install", "--no-deps", wheel)
    return folder


def test_the_wheel_contains_only_the_two_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"cuda_on_cpu", "inlinebench"}
    for needed in ("inlinebench/py.typed", "inlinebench/devices/cuda/gpu_clock.cu",
                   "inlinebench/compile/precompiled/host_compiler.sh", "inlinebench/compile/slim/torch/types.h",
                   "cuda_on_cpu/py.typed", "cuda_on_cpu/runtime/grid.cpp", "cuda_on_cpu/include/cuda/functional",
                   "cuda_on_cpu/include/cuda_on_cpu/all.h"):
        assert needed in names


def test_the_wheel_runs_without_other_packages(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "mine.py").write_text(PROBLEM)
    done = subprocess.run([environment / "bin" / "inlinebench", "--version"], cwd=tmp_path, check=True, text=True,
                          capture_output=True, env={})
    assert done.stdout.startswith("inlinebench ")
    done = subprocess.run([environment / "bin" / "python", "-c", TYPES], cwd=tmp_path, check=True, text=True,
                          capture_output=True, env={})
    assert done.stdout.startswith(f"passed {environment}")
