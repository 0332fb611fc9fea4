"""Where kernels compiled at run time come from: with Triton, which compiles without a GPU, and PyTorch's profiler."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._inductor.runtime.compile_tasks import _reload_python_module

from inlinebench.candidate.files import Files
from inlinebench.candidate.provenance import Provenance, triton_kernels
from inlinebench.devices.cuda.tracer import CuptiTracer, torch_tracer
from inlinebench.process.replies import ProvenanceReply, read_provenance
from inlinebench.timing.trace import Launch

HEAD = "import triton\nimport triton.language as tl\n"
BODY = """(x, n: tl.constexpr):
    index = tl.arange(0, n)
    tl.store(x + index, tl.load(x + index) * 2)
"""
DECORATED = {
    "plain": f"@triton.jit\ndef kernel{BODY}",
    "arguments on own lines": f'@triton.jit(\n    do_not_specialize=[\n        "x",\n    ],\n)\ndef kernel{BODY}',
    "called as a function": f"def inner{BODY}\nkernel = triton.jit(inner)\n",
    "another name": f'def shown(_):\n    return "doubles"\n\n@triton.jit(repr=shown)\ndef kernel{BODY}',
    "heuristics": f'@triton.heuristics({{"n": lambda _: 64}})\n@triton.jit\ndef kernel{BODY}',
}
NAMES = {"called as a function": "inner", "another name": "doubles"}


@pytest.fixture(scope="session", autouse=True)
def cache_of_triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    yield
    del os.environ["TRITON_CACHE_DIR"]
    if before is not None:
        os.environ["TRITON_CACHE_DIR"] = before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "solutions" / "p"
    folder.mkdir(parents=True)
    (folder / "fast.py").write_text("")
    return folder


@pytest.fixture
def files(tmp_path: Path, folder: Path) -> Files:
    """Returns the files of a solution, whose copy exists."""
    (tmp_path / "scratch").mkdir()
    files = Files(tmp_path / "scratch")
    files.copy(folder / "fast.py", [folder / "fast.py", folder])
    return files


def imported(path: Path, text: str) -> ModuleType:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Triton looks up the module of a function
    spec.loader.exec_module(module)
    return module


def compiled(function: Any) -> Any:
    """Compiles a Triton function for a GPU that need not be there."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget

    while not hasattr(function, "repr"):
        function = function.fn  # below heuristics
    source = triton.compiler.ASTSource(function, {"x": "*fp32", "n": "constexpr"}, {"n": 64})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))


@pytest.mark.parametrize("how", DECORATED)
def test_a_compiled_triton_function_of_the_solution_is_its_own(files: Files, folder: Path, how: str) -> None:
    pytest.importorskip("triton")
    kernel = compiled(imported(files.copy(folder / "fast.py", []), HEAD + DECORATED[how]).kernel)
    assert kernel.name == NAMES.get(how, "kernel")
    assert triton_kernels(files) == [kernel.name]


@pytest.mark.parametrize("where", ["solutions/p/helper.py", "scratch/tmp/generated.py"])
def test_functions_of_modules_beside_the_solution_and_of_generated_ones_are_its_own(
    files: Files, tmp_path: Path, where: str
) -> None:
    pytest.importorskip("triton")
    kernel = compiled(imported(tmp_path / where, HEAD + DECORATED["plain"]).kernel)
    assert triton_kernels(files) == [kernel.name]


@pytest.mark.parametrize("where", ["elsewhere/attention.py", "solutions/p/.venv/lib/site-packages/attention.py"])
def test_a_function_of_an_installed_package_is_not_the_solutions(files: Files, tmp_path: Path, where: str) -> None:
    pytest.importorskip("triton")
    kernel = compiled(imported(tmp_path / where, HEAD + DECORATED["plain"]).kernel)
    assert kernel.name == "kernel" and triton_kernels(files) == []


def test_a_function_that_torch_inductor_wrote_is_not_the_solutions(files: Files) -> None:
    pytest.importorskip("triton")
    path = files.scratch / "torchinductor_cache_dir" / "ab" / "cabcdef.py"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + DECORATED["plain"])
    kernel = compiled(_reload_python_module("cabcdef", str(path)).kernel)
    assert kernel.name == "kernel" and triton_kernels(files) == []


def test_a_function_that_was_never_compiled_does_not_count(files: Files, folder: Path) -> None:
    pytest.importorskip("triton")
    module = imported(files.copy(folder / "fast.py", []), HEAD + DECORATED["plain"])
    assert module.kernel is not None and triton_kernels(files) == []


def test_kernels_that_the_garbage_collector_has_frozen_are_found(files: Files, folder: Path) -> None:
    pytest.importorskip("triton")
    kernel = compiled(imported(files.copy(folder / "fast.py", []), HEAD + DECORATED["plain"]).kernel)
    gc.freeze()
    try:
        assert triton_kernels(files) == [kernel.name]
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_without_triton_there_are_no_kernels_of_triton(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "triton.compiler.compiler", raising=False)
    assert triton_kernels(files) == []


def profiles_itself(files: Files, work: Any) -> bool:
    provenance = Provenance(files)
    provenance.watching_profilers()(work)()
    return bool(provenance.to_json()["profiles_itself"])


def test_a_profiler_that_is_used_during_a_call_is_noted(files: Files) -> None:
    def with_profiler() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            torch.ones(1)

    def with_older_profiler() -> None:
        with torch.autograd.profiler.profile():
            torch.ones(1)

    assert profiles_itself(files, with_profiler)
    assert profiles_itself(files, with_older_profiler)
    assert not profiles_itself(files, lambda: torch.ones(1))
    with_profiler()  # outside a call
    assert not profiles_itself(files, lambda: torch.ones(1))


def test_launches_are_unknown_without_cupti(files: Files) -> None:
    provenance = Provenance(files)
    assert provenance.trace_launches(torch_tracer, lambda: 7) == 7
    assert provenance.to_json()["launches"] == []


def test_what_is_reported_is_what_the_judge_accepts(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(files.scratch / "triton_cache_dir"))
    tracer, provenance = CuptiTracer.__new__(CuptiTracer), Provenance(files)
    own, triton = str(files.scratch / "built_by_nvcc.so"), str(files.scratch / "triton_cache_dir" / "cuda_utils.so")
    launches = [Launch("rows(float*)", library) for library in (own, triton, "/lib/libffi.so.8")]
    monkeypatch.setattr(CuptiTracer, "launches", lambda _, work: (work(), launches))
    assert provenance.trace_launches(tracer, lambda: 7) == 7
    reply = json.loads(json.dumps({"op": "provenance", "nonce": "n", **provenance.to_json()}))
    assert read_provenance(reply) == ProvenanceReply(launches=tuple(launches), libraries=frozenset({own}))
