"""Tests of real_code.py with small C++ solutions on the CPU. CUDA sources would need a toolkit and torch with CUDA."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

import real_code
import real_code_builds as builds
from real_code_rows import Build, End, Maker, Pair, Record, bars, report

from inlinebench.builds.report import BuildReport, State
from inlinebench.builds.request import BuildOutcome
from inlinebench.results.result import Verdict

pytestmark = pytest.mark.slow

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
def get_inputs():
    return [torch.rand(4)]
def get_init_inputs():
    return [4]
"""
SOLUTION = r'''
import torch
from torch.utils.cpp_extension import load_inline
SOURCE = r"""
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME"};
PyMODINIT_FUNC PyInit_NAME() { return PyModule_Create(&definition); }
"""
def build(name, source=SOURCE):
    return load_inline(name=name, cpp_sources=source.replace("NAME", name), extra_cflags=["-O0"],
                       no_implicit_headers=True)
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        @init@
'''
SOLUTIONS = {
    "double/twice": ("build('one'); build(f'other_{n}')", End.BUILT, 2, ""),
    "double/broken": ("build('broken', 'int x = y;')", End.FAILED, 1, "was not declared"),
    "double/raises": ("build('raises'); raise RuntimeError('no GPU')", End.BUILT, 1, "no GPU"),
    "other/nothing": ("pass", End.NONE, 0, ""),
    "other/unloadable": ("build('unloadable', '')", End.FAILED, 1, "PyInit_unloadable"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "problems").mkdir()
    for name in ("double", "other"):
        (tmp_path / f"problems/{name}.py").write_text(PROBLEM)
    for name, (init, _, _, _) in SOLUTIONS.items():
        path = tmp_path / f"solutions/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOLUTION.replace("@init@", init))
    (tmp_path / "verdicts.tsv").write_text("problem\tsolution\tverdict\ndouble\tbroken\tpassed\n")
    return tmp_path


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, real_code.__file__, folder, "--out", folder / "out.jsonl", "--jobs", "2", *more],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )


def test_solutions_are_built_for_the_cpu_and_a_later_run_resumes(folder: Path) -> None:
    if real_code.target(real_code.read_options([str(folder)])):
        pytest.skip("there is a GPU")
    none = run(folder, "--time-limit", "0")
    assert none.returncode == 2 and "5 builds are left to do" in none.stdout, none.stderr
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to compare with; continuing with the harness only" in done.stderr
    lines = (folder / "out.jsonl").read_text().splitlines()
    found = {facts["solution"]: facts for facts in map(json.loads, lines)}
    assert {name: (facts["end"], facts["builds"]) for name, facts in found.items()} == {
        name: (end.value, number) for name, (_, end, number, _) in SOLUTIONS.items()}
    assert all((facts["seconds"] > 0) == (facts["builds"] > 0) for facts in found.values())
    assert "double/broken (recorded: passed): failed: cpp_sources" in done.stdout
    assert "| builds that hung | 0 of 5 | 0 | met |" in done.stdout
    (folder / "out.jsonl").write_text("\n".join(lines[1:]) + '\n{"cut off')
    again = run(folder)
    assert again.returncode == 0 and again.stderr.count("harness: ") == 1
    assert len((folder / "out.jsonl").read_text().splitlines()) == len(lines) + 1


def test_requested_stock_builds_that_are_impossible_are_an_error(folder: Path) -> None:
    if real_code.target(real_code.read_options([str(folder)])):
        pytest.skip("there is a GPU")
    done = run(folder, "--stock", "2")
    assert done.returncode == 2 and "leave out --stock" in done.stderr


def test_stock_builds_each_solution_in_its_own_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_code, "not_comparable", lambda _: "")
    monkeypatch.setattr(real_code, "target", lambda _: ())
    names = folder / "stock.txt"
    names.write_text("\n".join(["# all", *SOLUTIONS]))
    real_code.main([str(folder), "--stock-list", str(names), "--jobs", "2", "--out", str(folder / "out.jsonl")])
    record = Record(folder / "out.jsonl", json.loads((folder / "out.jsonl").read_text().splitlines()[0])["setup"])
    for pair in record.pairs(SOLUTIONS):
        _, end, number, reason = SOLUTIONS[pair.ours.solution]
        for build in (pair.stock, pair.ours):
            assert (build.end, build.builds) == (end, number), build
            assert reason in build.reason and (build.seconds > 0) == (number > 0), build
    assert capsys.readouterr().out.count("| SAME |") == len(record.pairs(SOLUTIONS)) == len(SOLUTIONS)


def test_a_stock_process_that_takes_too_long_is_killed(folder: Path) -> None:
    task = builds.Task(folder, (), 1, 0.1, float("inf"))
    assert [build.end for build in builds.by_stock(task, ["double/twice"], folder / "stock")] == [End.NONE]


@pytest.mark.parametrize("said, end", [
    (['{"begun": true}'], End.HUNG), (['{"begun": true}', '{"seconds": 2.0, "error": ""}'], End.BUILT), ([], End.NONE),
])
def test_a_killed_stock_process_hung_only_inside_a_build(said: list[str], end: End) -> None:
    assert builds.of_stock("p/s", "\n".join(said), 150.0, -9).end is end


@pytest.mark.parametrize("wanted, expected", [(0, []), (2, ["a", "c"]), (3, ["a", "b", "c"]), (9, list("abcd"))])
def test_solutions_for_stock_are_spread_evenly(
    wanted: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_code, "not_comparable", lambda _: "")
    given = real_code.read_options(["folder", "--stock", str(wanted)])
    assert real_code.chosen(list("abcd"), given, ("90",)) == expected


@pytest.mark.parametrize("outcomes, state, reason, end", [
    ([BuildOutcome(None, "took longer", verdict=Verdict.TIMED_OUT)], State.FAILED, "took longer", End.HUNG),
    ([BuildOutcome(Path("a.so")), BuildOutcome(None, "wrong")], State.BUILT, "the solution handles that", End.FAILED),
    ([BuildOutcome(Path("a.so"))], State.FAILED, "ImportError: a.so: undefined symbol: f", End.FAILED),
    ([BuildOutcome(Path("a.so"))], State.LATER, "needs a GPU", End.BUILT),
    ([], State.FAILED, "no answer within 300 s", End.NONE),
    ([], State.FAILED, "SyntaxError", End.NONE),
])
def test_the_outcome_is_that_of_the_builds(outcomes: list[BuildOutcome], state: State, reason: str, end: End) -> None:
    assert builds.of_harness(BuildReport("p", "s", state, reason, tuple(outcomes))).end is end


def test_a_second_try_is_recorded_whether_it_helped_or_not() -> None:
    library, slim = Path("a.so"), BuildOutcome(Path("a.so"), headers="slim")
    for outcome in (replace(slim, headers="full, because with slim ones: x"), BuildOutcome(None, "x", headers="full")):
        assert builds.of_harness(BuildReport("p", "s", State.BUILT, "", (slim, outcome))).second_try
    once = BuildReport("p", "s", State.BUILT, "", (BuildOutcome(library, headers="slim"),))
    assert not builds.of_harness(once).second_try


def pair(stock_s: float, ours_s: float, end: End = End.BUILT, *, second_try: bool = False) -> Pair:
    return Pair(Build(Maker.STOCK, "p/s", End.BUILT, stock_s, 1),
                Build(Maker.HARNESS, "p/s", end, ours_s, 1, second_try=second_try))


@pytest.mark.parametrize("pairs, missed", [
    ([pair(10, 4)] * 19 + [pair(10, 12)], []),
    ([pair(10, 4)] * 18 + [pair(10, 11)] * 2, ["no longer than 1 times stock"]),
    ([pair(10, 4)] * 19 + [pair(10, 12.1)], ["largest ratio"]),
    ([pair(10, 4)] * 19 + [pair(10, 20, second_try=True)], []),
    ([pair(10, 4)] * 19 + [pair(10, 20.1, second_try=True)], ["largest ratio of the 1 with a second try"]),
    ([pair(10, 99, End.FAILED)], ["built by stock and not by the harness"]),
    ([pair(10, 99, End.HUNG)], ["builds that hung", "built by stock and not by the harness"]),
    ([], []),
])
def test_bars_are_met_or_missed(pairs: list[Pair], missed: list[str]) -> None:
    ours = [each.ours for each in pairs]
    assert [bar.what for bar in bars(ours, pairs) if bar.met is False] == missed
    assert report(ours, pairs, {}, 0).count("**missed**") == len(missed)


def test_both_reasons_are_listed_if_outcomes_differ() -> None:
    both = Pair(Build(Maker.STOCK, "p/s", End.FAILED, 3.0, 1, "unknown architecture"),
                Build(Maker.HARNESS, "p/s", End.NONE, reason="SyntaxError", state="failed"))
    said = report([both.ours], [both], {}, 0)
    assert "- p/s\n  - stock: failed: unknown architecture\n  - harness: none (failed): SyntaxError" in said


def test_builds_of_another_setup_are_ignored(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", "8 side by side")
    record.put(Build(Maker.HARNESS, "p/s", End.BUILT))
    assert Record(tmp_path / "out", "8 side by side").missing(Maker.HARNESS, ["p/s", "p/t"]) == ["p/t"]
    assert Record(tmp_path / "out", "4 side by side").missing(Maker.HARNESS, ["p/s"]) == ["p/s"]
