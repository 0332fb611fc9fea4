"""Tests of `--resume` and `--shard` with real runs, one of which is killed."""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings
from pathlib import Path

import pytest

from inlinebench.cli.merge import merge, missing
from inlinebench.results.jsonl import read
from inlinebench.results.result import Result, Verdict

from ..running import LONGEST_S, TESTS, command, run_eval

pytestmark = pytest.mark.slow

NAMES = ("shapes", "view", "batch_norm")
COMMON = ("--problems", TESTS / "problems", "--check", "--min-calls", "3", "--allow-library", "--device", "cpu",
          "--seed", "5")


PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(4, 4)]
def get_init_inputs():
    return []
"""
SOLUTION = """
import sys
from pathlib import Path
import torch
from torch.utils.cpp_extension import load_inline
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
def built(source):
    source = "#include <torch/extension.h>" + source
    return load_inline("scaled", source, functions=["factor"], extra_include_paths=[str(HERE)]).factor()
FACTOR = {}
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * FACTOR
"""
INCBIN = r"""
asm(".section .rodata\nembedded: .incbin \"factor.bin\"\n.previous");
extern "C" const char embedded[] __attribute__((visibility("hidden")));
int factor() { return embedded[0] - '0'; }
"""
MACRO = """
#define NAME "factor.h"
int factor() { return
#include NAME
; }
"""
FACTORS = {
    "package": ("kernels/constants.py", "__import__('kernels.constants').constants.FACTOR"),
    "second": ("factor.py", "None\nimport os, factor\nFACTOR = factor.FACTOR"),
    "computed": ("a/b/c/factor.dat", "int((HERE / 'a' / 'b' / 'c' / ('fac' + 'tor.dat')).read_text())"),
    "ptx": ("factor.ptx", "int((HERE / 'factor.ptx').read_text())"),
    "cubin": ("factor.cubin", "int((HERE / 'factor.cubin').read_text())"),
    "link": ("factor", "int((HERE / 'factor').read_text())"),
    "macro": ("factor.h", f"built({MACRO!r})"),
    "incbin": ("factor.bin", f"built({INCBIN!r})"),
}
"""Solutions that multiply by the number in a file: the file, and how they read it."""


def rows(results: list[Result]) -> list[tuple[str, str, str, Verdict]]:
    return sorted((row.problem, row.solution, row.shape, row.verdict) for row in results)


@pytest.fixture(scope="module")
def plain(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The results of an uninterrupted run."""
    return run_eval(*NAMES, *COMMON, "--cache", cache, out=tmp_path_factory.mktemp("plain") / "out.jsonl").results


def test_a_killed_run_is_resumed(cache: Path, tmp_path: Path, plain: list[Result]) -> None:
    out = tmp_path / "out.jsonl"
    line = command(*NAMES, *COMMON, "--cache", cache, "--out", out)
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(line, stdin=nowhere, stdout=nowhere, stderr=nowhere) as first:
        while first.poll() is None and not (out.exists() and out.read_bytes().count(b"\n") >= 2):
            time.sleep(0.02)
        first.kill()
    written = out.read_bytes()
    assert 2 <= written.count(b"\n") < len(plain)
    with out.open("ab") as file:
        file.write(b'{"schema": 1, "problem": "sha')  # as if the run had been killed while writing
    again = subprocess.run([*line, "--resume"], capture_output=True, text=True, timeout=LONGEST_S, check=False,
                           stdin=subprocess.DEVNULL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = list(read(out))
    assert len(caught) == 1 and "half-written" in str(caught[0].message)
    assert rows(found) == rows(plain)
    assert out.read_bytes().startswith(written)
    assert sum(again.stdout.count(f" {row.solution} ") > 0 for row in plain) == len(plain)  # the table has all results


def test_resume_evaluates_only_what_changed(cache: Path, tmp_path: Path, plain: list[Result]) -> None:
    solutions = tmp_path / "solutions"
    for name in ("shapes", "view"):
        shutil.copytree(TESTS / "solutions" / name, solutions / name)
    out = tmp_path / "out.jsonl"
    arguments = ("shapes", "view", *COMMON, "--solutions", solutions, "--cache", cache, "--resume")
    first = run_eval(*arguments, out=out).results
    (solutions / "view" / "new.txt").write_text("no solution names this file")
    again = run_eval(*arguments, out=out).results[len(first):]
    assert rows(again) == [row for row in rows(first) if row[0] == "view"] != rows(first)
    assert {row.key for row in again}.isdisjoint(row.key for row in first)
    assert len(run_eval(*arguments, out=out).results) == len(first) + len(again)
    assert len(run_eval(*arguments, "--min-calls", "4", out=out).results) == 2 * len(first) + len(again)


def test_a_solution_is_evaluated_again_whatever_file_of_it_changes(cache: Path, tmp_path: Path) -> None:
    """Its result must be that of the changed file, so its libraries must be built again as well."""
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "twice.py").write_text(PROBLEM)
    solutions = tmp_path / "solutions"
    for name, (file, factor) in FACTORS.items():
        (solutions / name / file).parent.mkdir(parents=True)
        (solutions / name / file).write_text("FACTOR = 2\n" if file.endswith(".py") else "2")
        (solutions / name / "s.py").write_text(SOLUTION.format(factor))
    (solutions / "link" / "factor").rename(solutions / "shared")
    (solutions / "link" / "factor").symlink_to("../shared")
    given = [each for name in FACTORS for each in ("--solution", solutions / name / "s.py")]
    arguments = ("twice", *given, *COMMON[2:], "--problems", tmp_path / "problems", "--solutions", solutions, "--cache",
                 cache, "--resume")
    out = tmp_path / "out.jsonl"
    first = run_eval(*arguments, out=out)
    assert {row.solution: row.reason for row in first.results} == {f"{name}.s": "" for name in FACTORS}, first.err
    assert len(run_eval(*arguments, out=out).results) == len(FACTORS)
    for name, (file, _) in FACTORS.items():
        (solutions / name / file).write_text("FACTOR = 3\n" if file.endswith(".py") else "3")
    again = run_eval(*arguments, out=out).results[len(FACTORS):]
    assert {row.solution: row.verdict for row in again} == {f"{name}.s": Verdict.WRONG for name in FACTORS}


def test_the_shards_together_are_a_whole_run(cache: Path, tmp_path: Path, plain: list[Result]) -> None:
    parts = [run_eval(*NAMES, *COMMON, "--cache", cache, "--shard", f"{part}/3", out=tmp_path / f"{part}").results
             for part in (1, 2, 3)]
    assert all(parts) and max(map(len, parts)) - min(map(len, parts)) <= 1
    union = [row for part in parts for row in part]
    assert rows(union) == rows(plain) and rows(merge(union)) == rows(plain)
    assert {(row.problem, row.shape, row.solution): row.key for row in union} == {
        (row.problem, row.shape, row.solution): row.key for row in plain}
    assert missing(merge(union)) == [] and missing(merge(parts[0] + parts[2]))


@pytest.mark.parametrize(("arguments", "said"), [
    (("--resume",), "--resume needs --out"), (("--shard", "3/2"), "--shard 3/2: write I/N"),
    (("--shard", "1"), "--shard 1: write I/N"),
])
def test_contradictory_options_are_rejected(arguments: tuple[str, ...], said: str) -> None:
    run = run_eval(*arguments)
    assert run.status == 2 and said in run.err


def test_resume_rejects_a_file_that_has_no_results(tmp_path: Path) -> None:
    out = tmp_path / "notes.txt"
    out.write_text("milk, eggs\n")
    done = subprocess.run(command(*NAMES, *COMMON, "--resume", "--out", out), capture_output=True, text=True,
                          timeout=LONGEST_S, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "contains something other than results" in done.stderr
    assert out.read_text() == "milk, eggs\n"
