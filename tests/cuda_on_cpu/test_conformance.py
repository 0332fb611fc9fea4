"""Every conformance kernel gives the results that NumPy expects, on the CPU and, from the same file, on a GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cuda_on_cpu import Runtime, runtime_library
from inlinebench.compile.recipe import NVCC_FLAGS

from . import cub_cases, curand_cases, ptx_cases, ptx_warp_cases  # noqa: F401  they register their cases
from .cases import CASES, Case
from .device import KERNELS, Library, build_for_cpu, build_for_gpu, looking_for_races

_FILES = sorted({case.file for case in CASES})


@cache
def _cpu(file: str, folder: Path) -> Library:
    return Library(build_for_cpu(KERNELS / f"{file}.cu", folder))


@cache
def _gpu(file: str, folder: Path) -> Library:
    return Library(build_for_gpu(KERNELS / f"{file}.cu", folder))


def _check(case: Case, library: Library) -> None:
    arguments, expected = case.make(np.random.default_rng(7))
    after = library.call(case.launcher, arguments)
    for index, value in expected.items():
        got = after[index].ravel().astype(np.float64)
        want = np.asarray(value).ravel().astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=case.tolerance, atol=case.tolerance, err_msg=f"argument {index}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}-{case.launcher}")
def test_a_kernel_gives_the_expected_result_on_the_cpu_without_races(case: Case, build_folder: Path) -> None:
    with looking_for_races(Runtime(runtime_library(build_folder))) as found:
        _check(case, _cpu(case.file, build_folder))
    assert [message for message in found if not message.startswith("note: ")] == []


def test_each_device_wide_algorithm_of_cub_counts_as_a_launch(build_folder: Path) -> None:
    (sums,) = (case for case in CASES if case.launcher == "device_sums")
    runtime = Runtime(runtime_library(build_folder))
    before = runtime.launches()
    _check(sums, _cpu(sums.file, build_folder))
    assert runtime.launches() == before + 4


@pytest.mark.slow
# Without half.cu, which uses what torch's flags remove, and ptx_warp.cu, which uses no arithmetic of halves.
@pytest.mark.parametrize("file", sorted({*_FILES} - {"half", "ptx_warp"}))
def test_kernels_compile_with_torchs_flags(file: str, tmp_path: Path) -> None:
    build_for_cpu(KERNELS / f"{file}.cu", tmp_path, (*NVCC_FLAGS, "-std=c++17", "-O0"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}-{case.launcher}")
def test_a_kernel_gives_the_expected_result_on_a_gpu(case: Case, build_folder: Path) -> None:
    if not _has_gpu():
        pytest.skip("no NVIDIA GPU, or no nvcc")
    if case.file == "curand" and not _has_curand(build_folder):
        pytest.skip("the CUDA toolkit comes without cuRAND's headers")
    _check(case, _gpu(case.file, build_folder))


@cache
def _has_gpu() -> bool:
    if not (shutil.which("nvcc") and shutil.which("nvidia-smi")):
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode == 0


@cache
def _has_curand(folder: Path) -> bool:
    source = folder / "curand.cu"
    source.write_text("#include <curand_kernel.h>\n")
    return subprocess.run(["nvcc", "-E", str(source)], capture_output=True, check=False).returncode == 0


def test_every_launcher_has_a_case() -> None:
    covered = {(case.file, case.launcher) for case in CASES}
    missing = []
    for path in sorted(KERNELS.glob("*.cu")):
        text = re.sub(r"//.*", "", path.read_text())
        names = re.findall(r'extern "C" void (\w+)\(', text) + re.findall(r"^[A-Z]+\((\w+),", text, re.MULTILINE)
        missing += [f"{path.stem}: {name}" for name in names if name != "NAME" and (path.stem, name) not in covered]
    assert not missing
    assert len(covered) == len(CASES) >= 80
    assert sorted(path.stem for path in KERNELS.glob("*.cu")) == _FILES
