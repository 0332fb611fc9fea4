"""Flags, the runtime library, and the speed of two kernels."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cuda_on_cpu import host_flags, host_link_flags, runtime_library
from cuda_on_cpu.toolchain import RUNTIME_SOURCES, _build

from .device import KERNELS, Library, build_for_cpu


@pytest.mark.parametrize(
    ("cuda", "host"),
    [
        (["-O3", "--use_fast_math", "-DX=1", "-std=c++17"], ["-O3", "-DX=1", "-std=c++17"]),
        (["-gencode=arch=compute_90,code=sm_90", "-gencode", "arch=compute_80,code=sm_80", "-arch=sm_90a"], []),
        (["-Xcompiler", "-O2,-fopenmp", "--compiler-options='-fPIC'"], ["-O2", "-fopenmp", "-fPIC"]),
        (["-Xptxas", "-v", "--ptxas-options=-v", "-lineinfo", "--expt-relaxed-constexpr", "-maxrregcount=64"], []),
        (["-I", "/a b", "-I/c", "--include-path", "/d", "-D", "Y"], ["-I", "/a b", "-I/c", "-I/d", "-D", "Y"]),
        (["--std=c++20", "-std", "c++17", "--define-macro=Z=2"], ["-std=c++20", "-std=c++17", "-DZ=2"]),
        (["", "-ffast-math", "-Werror", "-fmad=false", "-allow-unsupported-compiler", "-t", "4", "-lcublas"], []),
    ],
)
def test_flags_for_gcc_are_taken_from_nvccs(cuda: list[str], host: list[str]) -> None:
    assert host_flags(cuda) == host


def test_cudas_libraries_are_not_linked() -> None:
    cuda = ["-lcublas", "-lcublasLt", "-lcudart", "-lcudart_static", "-lcuda", "-lcudnn", "-lcurand", "-lnvrtc"]
    assert host_link_flags(["-L/x", *cuda, "-lcurl", "-lm", "-Wl,-z,now"]) == ["-L/x", "-lcurl", "-lm", "-Wl,-z,now"]


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: data[:9] + b"?" + data[10:],
                                    lambda data: data + b"?"], ids=["emptied", "cut", "changed", "longer"])
def test_a_damaged_library_is_built_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    source = tmp_path / "answer.cpp"
    source.write_text('extern "C" int answer() { return 42; }')

    def build() -> Path:
        return _build(tmp_path / "cache", "answer", [source], ["-fPIC"], [], compiler="g++")

    data = build().read_bytes()
    build().write_bytes(damage(data))
    assert build().read_bytes() == data
    assert ctypes.CDLL(str(build())).answer() == 42


def test_the_runtime_is_built_once(build_folder: Path) -> None:
    first = runtime_library(build_folder)
    made = first.stat().st_mtime_ns
    assert runtime_library(build_folder) == first and first.stat().st_mtime_ns == made
    assert all(path.exists() for path in RUNTIME_SOURCES)


@pytest.mark.parametrize(("launcher", "seconds"), [("naive_matmul", 0.5), ("tiled_matmul", 5.0)])
def test_a_matmul_is_fast_enough(launcher: str, seconds: float, build_folder: Path) -> None:
    library = Library(build_for_cpu(KERNELS / "matmul.cu", build_folder, ("-std=c++17", "-O3")))
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    arguments = [a, b, np.zeros_like(a), 256, 256, 256]
    start = time.perf_counter()
    after = library.call(launcher, arguments)
    assert time.perf_counter() - start < seconds
    np.testing.assert_allclose(after[2], a @ b, rtol=1e-3, atol=1e-3)
