"""Tests of `run_eval.py --build-only` and `--arch` with real processes. A script that compiles nothing replaces nvcc.

tests/compile/test_service.py tests real builds for several architectures.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cuda import driver
from inlinebench.devices.cuda.target import GpuTarget
from inlinebench.results.result import Verdict

from ..devices.test_driver import fake_driver
from ..running import Run, run_eval

pytestmark = pytest.mark.slow

NVCC = """#!/bin/sh
case "$*" in *--version*) echo "release 13.0, of a test"; exit;; esac
kind=-c
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2; shift;; -shared) kind=-shared;; esac
  shift
done
exec c++ $kind -fPIC -x c++ /dev/null -o "$out"
"""
PROBLEM = """
import torch
from torch import nn

N = 32
SHAPES = {"small": {"N": 16}}

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()

    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return [N]
"""
SOURCE = r"""
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME"};
PyMODINIT_FUNC PyInit_NAME() { return PyModule_Create(&definition); }
"""
FLAGS = ("-O0",)
SOLUTION = f"""
import sys, torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r'''{SOURCE}'''

def build(name, source=SOURCE):
    return load_inline(name=name, cpp_sources=source.replace("NAME", name), cuda_sources="", extra_cflags={FLAGS!r},
                       no_implicit_headers=True)

@top@

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        @init@

    def forward(self, x):
        return x * 2
"""


def solution(top: str = "", init: str = "pass") -> str:
    return SOLUTION.replace("@top@", top).replace("@init@", init)


SOLUTIONS: Mapping[str, tuple[str, str, str]] = {
    "at_import": (solution("build('at_import')"), "built", ""),
    "for_each_shape": (solution(init="build(f'shape_{n}')"), "built", ""),
    "nothing": (solution(), "built", "requested no build"),
    "does_without": (solution("try: build('without', 'wrong')\nexcept RuntimeError: pass"), "built", "wrong"),
    "on_a_gpu": (solution("build('on_a_gpu')", "self.x = torch.zeros(1, device='cuda')"), "later", "needs a GPU"),
    "asserts": (solution("assert torch.cuda.is_available()"), "later", "needs a GPU"),
    "broken": (solution("build('broken', 'wrong')"), "failed", "cpp_sources:1"),
    "not_linked": (solution("""build('not_linked', 'namespace at::cuda { int nowhere(int); }\\n' +
                            SOURCE.replace('return ', 'at::cuda::nowhere(1); return '))"""),
                   "failed", "undefined symbol at::cuda::nowhere(int): it is declared, but not defined"),
    "raises": (solution(init="1 / 0"), "failed", "ZeroDivisionError"),
    "no_class": ("x = 1", "failed", "no class ModelNew"),
    "leaves": (solution("sys.exit(3)"), "failed", "status 3"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with problems, solutions and a CUDA toolkit."""
    root = tmp_path_factory.mktemp("build only")
    for folder in ("problems", "solutions/twice", "solutions/drawn", "toolkit/bin", "toolkit/lib64"):
        (root / folder).mkdir(parents=True)
    (root / "problems/twice.py").write_text(PROBLEM)
    (root / "problems/drawn.py").write_text(PROBLEM.replace("return [N]", "return [torch.ones(N, device='cuda')]"))
    (root / "solutions/drawn/any.py").write_text(solution("build('drawn')"))
    for name, (text, _, _) in SOLUTIONS.items():
        (root / f"solutions/twice/{name}.py").write_text(text)
    (root / "toolkit/bin/nvcc").write_text(NVCC)
    (root / "toolkit/bin/nvcc").chmod(0o755)
    for name in ("cudart", "c10_cuda", "torch_cuda"):  # PyTorch's CPU build lacks them
        (root / f"toolkit/lib64/lib{name}.a").write_bytes(b"!<arch>\n")
    return root


def build(root: Path, *arguments: str, cache: str = "cache", environment: Mapping[str, str] | None = None) -> Run:
    return run_eval("--build-only", "--problems", root / "problems", "--solutions", root / "solutions", "--cache",
                    root / cache, *arguments,
                    environment={"CUDA_HOME": str(root / "toolkit"), "CUDA_VISIBLE_DEVICES": "", **(environment or {})})


@pytest.fixture(scope="module")
def first(place: Path) -> Run:
    return build(place, "--arch", "sm_90,80", "--headers", "auto")


def row(run: Run, name: str) -> list[str]:
    """The cells of a solution's row."""
    (found,) = [line.split() for line in run.out.splitlines() if f" {name} " in line]
    return found


@pytest.mark.parametrize("name", SOLUTIONS)
def test_each_solution_has_a_row_and_a_reason(first: Run, name: str) -> None:
    _, state, reason = SOLUTIONS[name]
    assert row(first, name)[:3] == ["twice", name, state], first.out + first.err
    said = [line for line in first.out.splitlines() if line.startswith(f"twice/{name}: {state}: ")]
    assert len(said) == bool(reason) and all(reason in line for line in said)


def test_the_row_of_a_built_solution_has_seconds_and_headers(first: Run) -> None:
    seconds, cached, headers = row(first, "at_import")[3:]
    assert float(seconds) > 0 and (cached, headers) == ("no", "slim")
    assert row(first, "nothing")[3:] == ["—", "—", "—"]


def test_a_solution_whose_problem_makes_its_arguments_on_a_gpu_is_built_without_one(first: Run) -> None:
    assert row(first, "any")[:3] == ["drawn", "any", "built"]


def test_a_failure_gives_exit_status_1_without_a_traceback(first: Run, place: Path) -> None:
    assert first.status == 1
    assert "Traceback" not in first.out + first.err
    assert f"Built for sm_80, sm_90, in {place / 'cache'}" in first.out
    assert build(place, "--arch=80,90", "twice/at_import", "twice/asserts", "twice/@reference").status == 0


def test_a_second_run_takes_all_builds_from_the_cache(first: Run, place: Path) -> None:
    again = build(place, "--arch", "80", "--arch", "90", "--headers", "auto", "twice")
    for name in ("at_import", "for_each_shape", "on_a_gpu"):
        assert row(again, name)[4] == "yes", again.out


def test_a_copied_cache_serves_an_evaluation_without_builds(
    first: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is in another folder, with another toolkit of the same version. A judge on a GPU requests the same."""
    shutil.copytree(place / "cache", tmp_path / "carried")
    shutil.copytree(place / "toolkit", tmp_path / "elsewhere")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "elsewhere"))
    toolchain.cuda_home.cache_clear()
    service = BuildService(tmp_path / "carried", GpuTarget(("90", "80")), BuildSettings(60))
    try:
        names = ("at_import", "shape_16", "shape_32", "on_a_gpu")
        requests = [BuildRequest(name, (SOURCE.replace("NAME", name),), ("",), extra_cflags=FLAGS,
                                 no_implicit_headers=True) for name in names]
        assert [service.build(request).cached for request in requests] == [True] * len(names)
        before = sorted((tmp_path / "carried").rglob("*.so"))
        assert service.runtime_libraries().clock in before
        assert sorted((tmp_path / "carried").rglob("*.so")) == before
    finally:
        service.close()
        toolchain.cuda_home.cache_clear()


def test_without_a_gpu_the_architecture_must_be_given(place: Path) -> None:
    run = build(place, "twice/at_import", environment={"LD_LIBRARY_PATH": ""})
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("run_eval.py: --build-only: ") and "--arch 90" in run.err and "--device cpu" in run.err


def test_the_default_architecture_is_that_of_the_installed_gpu(place: Path, tmp_path: Path) -> None:
    driver = {"LD_LIBRARY_PATH": str(fake_driver(tmp_path))}
    run = build(place, "twice/at_import", "--device", "cuda:1", environment=driver)
    assert run.status == 0 and "Built for sm_101" in run.out


def test_builds_for_the_cpu_need_no_architecture(place: Path) -> None:
    run = build(place, "twice/at_import", "twice/broken", "twice/raises", "--device", "cpu", cache="cpu")
    assert run.status == 1 and "Built for the CPU" in run.out
    assert [row(run, name)[2] for name in ("at_import", "broken", "raises")] == ["built", "failed", "failed"]


@pytest.mark.gpu
def test_builds_made_without_a_visible_gpu_serve_a_run_on_it(tmp_path: Path) -> None:
    cache, architecture = tmp_path / "cache", driver.ask(0)
    built = run_eval("matmul_diag/naive", "--build-only", "--arch", architecture, "--cache", cache,
                     environment={"CUDA_VISIBLE_DEVICES": ""})
    assert built.status == 0, built.out
    cache.rename(tmp_path / "carried")
    run = run_eval("matmul_diag/naive", "--device", "cuda", "--check", "--shape", "small", "--cache",
                   tmp_path / "carried", out=tmp_path / "out.jsonl")
    row = run.row("matmul_diag", "naive")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.build is not None and row.build.cached and row.build.seconds == 0


def test_an_evaluation_without_a_gpu_rejects_arch(place: Path) -> None:
    run = run_eval("matmul_diag", "--arch", "90", "--cache", place / "cache", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert (run.status, run.out) == (2, "")
    assert "--arch 90: no GPU is in use; use --build-only" in run.err
