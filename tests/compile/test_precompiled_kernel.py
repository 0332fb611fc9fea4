"""nvcc's host compiler with precompiled headers gives the same results as without.

Sources are compiled but not linked, because the libraries come with PyTorch for CUDA.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.precompiled import HOST_COMPILER, PRECOMPILED_DIR
from inlinebench.compile.slim import needs_thrust
from inlinebench.devices.cuda.recipe import recipe

pytestmark = [pytest.mark.nvcc, pytest.mark.slow]

ARCHITECTURES = ("90",)
CUDA = """
namespace {
template <typename T> __global__ void twice(const T* x, T* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
}
torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 1, "run: x has ", x.dim(), " dimensions, not 1");
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", [&] {
    twice<<<1, x.numel()>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>());
  });
  return y;
}
"""
STRICT = ("-Xcompiler", "-Winvalid-pch")
"""GCC warns if it cannot use a precompiled header. A compilation that prints anything is repeated without one."""
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$*" >> "{calls}"\nexec {gcc} "$@"\n'
REQUEST = BuildRequest("twice", ("torch::Tensor run(torch::Tensor x);",), (CUDA,), {"run": ""},
                       extra_cuda_cflags=STRICT)


def compiled(request: BuildRequest, precompiled: Path, folder: Path) -> tuple[int, str, set[str]]:
    """Returns the exit status, the output, and the symbols of the object that nvcc makes."""
    tools, calls = folder / "tools", folder / "calls"
    tools.mkdir(exist_ok=True)
    calls.write_text("")
    (tools / "gcc").write_text(RECORDER.format(calls=calls, gcc=shutil.which("gcc")))
    (tools / "gcc").chmod(0o755)
    for name, text in recipe(request, ARCHITECTURES, slim=True, precompiled=precompiled).files.items():
        (folder / name).write_text(text)
    done = subprocess.run([toolchain.ninja(), "-C", folder, "cuda.o"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    if done.returncode:
        return done.returncode, done.stdout, set()
    listed = subprocess.run(["nm", folder / "cuda.o"], capture_output=True, text=True, check=True).stdout
    return 0, done.stdout, {line[17:] for line in listed.splitlines() if line[17] in "TWVDB"}


def reads_it(folder: Path, gpu_precompiled: Path, level: str) -> bool:
    """Whether the last call of GCC for the build in a folder read the precompiled header."""
    return f"-include {gpu_precompiled / level / 'prefix.h'} " in (folder / "calls").read_text().splitlines()[-1]


def test_the_object_is_the_same_with_precompiled_headers(gpu_precompiled: Path, tmp_path: Path) -> None:
    status, log, symbols = compiled(REQUEST, gpu_precompiled, tmp_path)
    assert status == 0 and reads_it(tmp_path, gpu_precompiled, "plain"), log
    status, log, plain = compiled(REQUEST, PRECOMPILED_DIR, tmp_path)
    assert status == 0 and not reads_it(tmp_path, gpu_precompiled, "plain"), log
    assert symbols == plain
    assert any("3run" in symbol for symbol in symbols)


def test_optimized_sources_have_their_own_precompiled_headers(gpu_precompiled: Path, tmp_path: Path) -> None:
    status, log, _ = compiled(replace(REQUEST, extra_cuda_cflags=(*STRICT, "-O3")), gpu_precompiled, tmp_path)
    assert status == 0 and reads_it(tmp_path, gpu_precompiled, "O3"), log


@pytest.mark.parametrize("named", [("80", "90"), ("90a",), ("80", "100f")])
def test_precompiled_headers_are_used_with_flags_that_name_gpus(
    gpu_precompiled: Path, tmp_path: Path, named: tuple[str, ...]
) -> None:
    """nvcc defines macros for them, and GCC uses a precompiled header only with the same macros."""
    several = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in named]
    status, log, _ = compiled(replace(REQUEST, extra_cuda_cflags=(*STRICT, *several)), gpu_precompiled, tmp_path)
    assert status == 0 and reads_it(tmp_path, gpu_precompiled, "plain"), log


def test_precompiled_headers_are_not_used_with_flags_that_change_them(gpu_precompiled: Path, tmp_path: Path) -> None:
    """These flags change the headers' text."""
    status, log, _ = compiled(replace(REQUEST, extra_cuda_cflags=(*STRICT, "-O1", "-D_FORTIFY_SOURCE=2")),
                              gpu_precompiled, tmp_path)
    assert status == 0 and "prefix.h" not in (tmp_path / "calls").read_text(), log


def test_a_source_with_warnings_is_compiled_without_precompiled_headers(gpu_precompiled: Path, tmp_path: Path) -> None:
    """The text of cudafe++ disables warnings, which GCC does not store in precompiled headers."""
    warned = CUDA.replace("  auto y =", "  x.data<float>();\n  auto y =")
    status, log, _ = compiled(replace(REQUEST, cuda_sources=(warned,)), gpu_precompiled, tmp_path)
    assert status == 0 and not reads_it(tmp_path, gpu_precompiled, "plain"), log
    assert log.count("deprecated") >= 1, log


def test_an_error_of_the_host_compiler_names_the_authors_line(
    gpu_precompiled: Path, tmp_path: Path
) -> None:
    broken = CUDA.replace("  auto y =", '  asm("notaninstruction");\n  auto y =')
    status, log, _ = compiled(replace(REQUEST, cuda_sources=(broken,)), gpu_precompiled, tmp_path)
    assert status != 0
    assert log.count("cuda_sources:7: Error") == 1, log


def test_an_error_in_a_kernel_is_reported_once_with_the_authors_line(gpu_precompiled: Path, tmp_path: Path) -> None:
    broken = CUDA.replace("y[threadIdx.x] = 2", "unknown[threadIdx.x] = 2")
    status, log, _ = compiled(replace(REQUEST, cuda_sources=(broken,)), gpu_precompiled, tmp_path)
    assert status != 0
    assert log.count("cuda_sources(3): error") == 1, log


def test_a_damaged_precompiled_header_does_not_fail_builds(gpu_precompiled: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    (damaged / "plain").mkdir(parents=True)
    shutil.copy(gpu_precompiled / HOST_COMPILER, damaged)
    os.link(gpu_precompiled / "plain" / "prefix.h", damaged / "plain" / "prefix.h")
    (damaged / "plain" / "prefix.h.gch").write_bytes(b"planted")
    folder = tmp_path / "build"
    folder.mkdir()
    status, log, symbols = compiled(REQUEST, damaged, folder)
    assert status == 0 and symbols, log


def test_the_authors_host_compiler_is_kept(tmp_path: Path) -> None:
    chosen = replace(REQUEST, extra_cuda_cflags=("-ccbin", "g++"))
    lines = recipe(chosen, ARCHITECTURES, slim=True).files["build.ninja"]
    assert "$host" not in lines and "-ccbin g++" in lines


@pytest.mark.parametrize(("flags", "fits"), [
    (("-O3", "--use_fast_math"), True), (("-ftz=true", "-Xcompiler", "-fPIC"), True), (("-Xcompiler=-O3,-Wall",), True),
    (("-Xcompiler", "-fshort-enums"), False), (("--compiler-options=-Wall,-fvisibility=hidden",), False),
    (("-Xcompiler -fsanitize=undefined",), False),
])
def test_precompiled_headers_are_not_used_with_flags_that_gcc_does_not_check(
    flags: tuple[str, ...], fits: bool
) -> None:
    """GCC accepts a precompiled header whatever most flags that begin with -f say."""
    lines = recipe(replace(REQUEST, extra_cuda_cflags=flags), ARCHITECTURES, slim=True).files["build.ninja"]
    assert ("$ccbin $host" in lines) is fits
    lines = recipe(replace(REQUEST, extra_cflags=flags), ARCHITECTURES, slim=True).files["build.ninja"]
    assert ("inlinebench_binding.h" in lines) is fits


def test_nvcc_uses_its_default_host_compiler_if_nothing_is_precompiled() -> None:
    places = recipe(REQUEST, ARCHITECTURES, slim=True).files["places.ninja"]
    assert "\nccbin = \nhost = \n" in places


@pytest.mark.parametrize("choice", ["a gcc beside nvcc", "a profile"])
def test_the_host_compiler_of_a_toolkit_is_kept(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch()
    monkeypatch.setattr(toolchain, "nvcc", lambda: str(tmp_path / "bin" / "nvcc"))
    toolchain.nvcc_takes_gcc_from_the_path.cache_clear()
    assert toolchain.nvcc_takes_gcc_from_the_path()
    if choice == "a profile":
        (tmp_path / "bin" / "nvcc.profile").write_text("compiler-bindir = /opt/gcc\n")
    else:
        (tmp_path / "bin" / "gcc").touch()
    toolchain.nvcc_takes_gcc_from_the_path.cache_clear()
    try:
        assert not toolchain.nvcc_takes_gcc_from_the_path()
    finally:
        toolchain.nvcc_takes_gcc_from_the_path.cache_clear()


@pytest.mark.parametrize(("source", "needs"), [
    (CUDA, False), ("#include <thrust/sort.h>", True), ("#include <cub/cub.cuh>", True),
    ("c10::complex<float> z;", True), ("at::kComplexFloat", True), ("AT_DISPATCH_COMPLEX_TYPES", True),
    ("// a trusty kernel", False),
])
def test_sources_that_may_need_thrusts_complex_numbers_get_its_header(source: str, needs: bool) -> None:
    assert needs_thrust((source,)) is needs
    text = recipe(replace(REQUEST, cuda_sources=(source,)), ARCHITECTURES, slim=True).files["build.ninja"]
    assert ("$thrust" not in text) is needs
    assert "$thrust" not in recipe(REQUEST, ARCHITECTURES, slim=False).files["build.ninja"]
