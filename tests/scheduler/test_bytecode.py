"""Tests that the cache keeps bytecode that the installation lacks, and none of foreign code."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from inlinebench.compile.cache.contents import BYTECODE
from inlinebench.scheduler import bytecode
from inlinebench.wire.bytecode import DO_NOT_WRITE, FOLDER
from tests.running import run_eval

PACKAGE = "compiled_anew"
PROBLEM = """
import neighbour
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return x + neighbour.ONE
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""
SOLUTION = """
import sys
import neighbour
from torch import nn
assert sys.pycache_prefix is None
class ModelNew(nn.Module):
    def forward(self, x):
        return x + neighbour.ONE
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a cache that does not exist yet, next to a package without bytecode."""
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "__init__.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(DO_NOT_WRITE, "1")
    return tmp_path / "cache"


def kept(cache: Path) -> list[str]:
    """Returns the modules whose bytecode is in the cache."""
    return sorted(path.name.split(".")[0] for path in (cache / BYTECODE).rglob(f"{cache.parent.name}/**/*.pyc"))


def run(cache: Path, code: str) -> None:
    """Runs code in a process with the environment variables of the cache."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cache.parent), *sys.path]),
                   **bytecode.environment(cache, PACKAGE)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_bytecode_that_the_installation_lacks_is_cached(cache: Path) -> None:
    run(cache, f"import {PACKAGE}")
    assert kept(cache) == ["__init__"] and not (cache.parent / PACKAGE / "__pycache__").exists()


def test_cached_bytecode_is_used_until_its_source_changes(cache: Path) -> None:
    run(cache, f"import {PACKAGE}")
    source = cache.parent / PACKAGE / "__init__.py"
    facts = source.stat()
    source.write_text("value = 2\n")
    os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    run(cache, f"import {PACKAGE}; assert {PACKAGE}.value == 1")
    source.write_text("value = 33\n")
    run(cache, f"import {PACKAGE}; assert {PACKAGE}.value == 33")


def test_bytecode_of_foreign_modules_is_not_cached(cache: Path) -> None:
    (cache.parent / "foreign.py").write_text("")
    run(cache, f"import os, {PACKAGE}; from inlinebench.wire import bytecode; bytecode.leave(); import foreign; "
               f"assert {FOLDER!r} not in os.environ and foreign.__cached__.startswith({str(cache.parent)!r})")
    assert kept(cache) == ["__init__"] and not (cache.parent / "__pycache__").exists()


def test_an_installation_with_bytecode_needs_no_cache(cache: Path) -> None:
    py_compile.compile(str(cache.parent / PACKAGE / "__init__.py"))
    assert bytecode.environment(cache, PACKAGE) == {} and not cache.exists()


def test_an_installation_that_python_can_write_needs_no_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DO_NOT_WRITE, "")
    assert bytecode.environment(cache, PACKAGE) == {} and not cache.exists()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # simulates a read-only installation
    assert bytecode.environment(cache, PACKAGE)[FOLDER] == str(cache / BYTECODE)


def test_a_missing_package_is_not_an_error_here(cache: Path) -> None:
    assert bytecode.environment(cache, "no_such_package") == {}


def test_a_bytecode_folder_that_others_could_access_is_emptied(cache: Path) -> None:
    planted = Path(bytecode.environment(cache, PACKAGE)[FOLDER]) / "planted.pyc"
    planted.write_text("")
    assert bytecode.environment(cache, PACKAGE) and planted.exists()
    planted.parent.chmod(0o755)
    assert bytecode.environment(cache, PACKAGE) and not planted.exists()


def test_a_cache_that_others_can_write_is_not_used(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert bytecode.environment(cache, PACKAGE) == {}


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_caches_bytecode_of_torch_and_the_harness_only(tmp_path: Path) -> None:
    torch_anew = tmp_path / "torch"
    torch_anew.mkdir()
    for path in Path(torch.__file__).parent.iterdir():
        if path.name != "__pycache__":
            (torch_anew / path.name).symlink_to(path)
    for name, text in {"problems/plus_one.py": PROBLEM, "solutions/plus_one/imports.py": SOLUTION,
                       "library/neighbour.py": "ONE = 1\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    run = run_eval(
        "--problems", tmp_path / "problems", "--solutions", tmp_path / "solutions", "--device", "cpu", "--check",
        "--allow-library", "--cache", tmp_path / "cache",
        environment={DO_NOT_WRITE: "1", "PYTHONPATH": f"{tmp_path}:{tmp_path / 'library'}"})
    assert run.status == 0, run.out + run.err
    found = {path.name.split(".")[0]: path.parent for path in (tmp_path / "cache" / BYTECODE).rglob("*.pyc")}
    assert {"functional", "forkserver", "probe"} <= found.keys()
    assert not {"neighbour", "imports", "plus_one"} & found.keys()
    assert any(str(torch_anew).lstrip("/") in str(folder) for folder in found.values())
