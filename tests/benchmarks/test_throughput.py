from __future__ import annotations

import argparse
import ast
import itertools
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.builds.request import BuildOutcome, BuildRequest
from inlinebench.catalog import Solution

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

import throughput
import throughput_parts
import throughput_planted as planted
import throughput_processes as processes
from accuracy_bars import Row, line
from throughput_parts import Parts, Skipped, Stock, StockFigures, turns
from throughput_processes import Builds, Failed, Machine, StockRun, stock_environment
from throughput_rows import (
    KINDS,
    PARTS,
    TITLES,
    Built,
    Further,
    Large,
    Record,
    Shared,
    Suite,
    Undisturbed,
    Warm,
    head,
    read_record,
    status_of,
)

MET: dict[str, list[Row]] = {
    "builds": [Built("a", 4, 65.0, 20.0, 13.0, "slim"), Built("b", 0, 36.0, None, 12.0, "slim"),
               Built("c", 4, 42.0, 20.0, 12.0, "slim"), Built("median", ratios=[3.5, 4.0, 9.0])],
    "warm": [Warm("a", [5.9, 4.0, 9.0, 5.0, 4.5], [4.0, 3.6, 4.1, 3.5, 9.0])],
    "next": [Further("--check", False, 8, 6.0, 17.9), Further("with times", True, 8, 8.0, 39.9)],
    "large": [Large("a", 6.0, 55, 19.9)],
    "suite": [Suite("a", 16, 120.0, [74.0, 76.0], 1)],
    "devices": [Shared("a", 60.0, 33.0)],
    "undisturbed": [Undisturbed("a", [70.0, 71.0, 90.0], [72.0, 60.0, 72.0], 8),
                    Undisturbed("b", [70.0, 71.0], [69.5, 69.3], 8)],
}
MISSED: list[tuple[str, Row]] = [
    ("builds", Built("a", 4, 41.9, 20.0, 12.0, "slim")), ("builds", Built("median", ratios=[3.5, 3.9, 9.0])),
    ("builds", Built("the first", 0, 35.9, None, 12.0, "slim")),
    ("warm", Warm("slow", [6.1, 6.2, 4.0], [5.5, 5.5, 5.5])),
    ("warm", Warm("far beyond the import", [5.1, 5.2, 5.3], [3.6, 3.6, 3.6])),
    ("next", Further("--check", False, 8, 6.0, 18.1)),
    ("next", Further("with times", True, 8, 6.0, 38.1)),
    ("next", Further("no work", True, 8, 6.0, 5.9)),
    ("large", Large("a", 6.0, 55, 20.1)),
    ("suite", Suite("a", 16, 121.0, [74.0, 76.0], 1)),
    ("devices", Shared("a", 60.0, 33.5)),
    ("undisturbed", Undisturbed("slower", [70.0] * 4, [71.5] * 4, 8)),
    ("undisturbed", Undisturbed("faster", [70.0] * 4, [68.5] * 4, 8)),
    ("undisturbed", Undisturbed("no builds", [70.0] * 4, [70.0] * 4, 0)),
]
HERE = {"gpu": "H100", "cores": 16}


def rows_of(rows: dict[str, list[Row]]) -> list[tuple[str, Row]]:
    return [(part, row) for part, some in rows.items() for row in some]


def options(*arguments: str) -> argparse.Namespace:
    return throughput.read_options(list(arguments))


@pytest.mark.parametrize(("part", "row"), rows_of(MET))
def test_a_fast_row_meets_its_bar(part: str, row: Row) -> None:
    assert isinstance(row, KINDS[part]) and row.met and line(row).endswith("| met |")


@pytest.mark.parametrize(("part", "row"), MISSED)
def test_a_slow_row_misses_its_bar(part: str, row: Row) -> None:
    assert isinstance(row, KINDS[part]) and not row.met and line(row).endswith("| **missed** |")


@pytest.mark.parametrize("row", [
    *(kind("nothing") for kind in KINDS.values()), Built("stock only", 4, 65.0), Built("ours only", ours_s=1.0),
    Built("no time at all", 4, 65.0, 20.0, 0.0), Warm("alone", [4.0]), Further("one", one_s=3.0, further=8),
    Further("none further", one_s=3.0, more_s=4.0), Suite("no stock", 16, 100.0), Suite("no run", 16, stock_s=[70.0]),
    Shared("one", 60.0), Undisturbed("idle", [70.0], [], 8),
])
def test_missing_figures_miss_their_bar_and_can_be_printed(row: Row) -> None:
    assert not row.met and "nan" not in line(row).lower()


@pytest.mark.parametrize("part", PARTS)
def test_rows_have_a_cell_for_each_column(part: str) -> None:
    *_, columns, rule = head(part).splitlines()
    assert TITLES[part] in head(part) and len({text.count("|") for text in (columns, rule, line(MET[part][0]))}) == 1


def test_rows_are_printed_as_table_lines() -> None:
    assert line(MET["builds"][0]) == "| a | 4 | 65.00 | 20.00 | 13.00 | slim | 5.00x | 3.50x | met |"
    assert line(MET["warm"][0]) == "| a | 5 | 4.00 | 5.00 | 6.00 | 3.50 | 4.00 | 1.00 | 1.50 | met |"
    assert line(MET["next"][0]) == "| --check | 6.00 | 17.90 | 8 | 1.49 | 1.50 | met |"
    assert line(MET["suite"][0]) == "| a | 120.00 | 74.00, 76.00 | 1 of 2 | 1200 | 10.00x | 10.00x | met |"
    assert line(MET["undisturbed"][0]) == "| a | 3 + 3 | 71.00 | 72.00 | 8 | +1.41 % | 2 % | met |"


def test_a_record_survives_a_round_trip_through_its_file(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    record = Record(path, HERE)
    for part, rows in MET.items():
        record.begin(part)
        for row in rows:
            record.put(part, row)
        record.end(part, 10.5)
    assert read_record(path) == (HERE, MET, dict.fromkeys(PARTS, 10.5))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_record_keeps_other_parts_of_the_same_environment(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    record = Record(path, HERE)
    for part in ("large", "devices"):
        record.begin(part)
        record.put(part, MET[part][0])
        record.end(part, 30.0)
    record = Record(path, HERE)
    record.begin("large")
    assert read_record(path) == (HERE, {"large": [], "devices": MET["devices"]}, {"devices": 30.0})
    record.put("large", Large("a", 6.0, 20, 9.0))
    record.put("large", Large("b", 6.0, 55, 19.0))
    record.put("large", MET["large"][0])
    assert read_record(path)[1]["large"] == [MET["large"][0], Large("b", 6.0, 55, 19.0)]
    record.drop("devices")
    assert list(read_record(path)[1]) == ["large"]
    assert Record(path, {"gpu": "another"}).parts == {}


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"environment": {}, "parts": {"x": []}, "seconds": 1}',
    '{"environment": {}, "parts": {"large": [{"what": "a", "more": 1}]}, "seconds": {}}',
    '{"environment": {}, "parts": {"none": [{"what": "a"}]}, "seconds": {}}',
])
def test_files_that_are_not_records_are_rejected(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    path.write_text(text)
    assert throughput.show(path) == 2 and "not a file of figures" in capsys.readouterr().err
    assert throughput.show(tmp_path / "none.json") == 2


def test_the_exit_status_of_a_part_depends_on_bars_and_completeness() -> None:
    good, bad = MET["large"][0], Large("b", 6.0, 55, 30.0)
    assert [status_of([good], True), status_of([good, bad], True)] == [0, 1]
    assert [status_of([], True), status_of([good], False), status_of([bad], False)] == [2, 2, 2]


@pytest.mark.parametrize(("row", "finished", "status"), [
    (Large("a", 6.0, 55, 12.0), True, 0), (Large("a", 6.0, 55, 21.0), True, 1), (Large("a", 6.0, 55, 12.0), False, 2),
])
def test_recorded_figures_can_be_shown(
    row: Row, finished: bool, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record(tmp_path / "figures.json", HERE)
    record.begin("large")
    record.put("large", row)
    if finished:
        record.end("large", 41.0)
    assert throughput.show(tmp_path / "figures.json") == status
    shown = capsys.readouterr().out
    assert "gpu H100, cores 16" in shown and line(row) in shown
    assert ("41 s" in shown) is finished and ("not measured to the end" in shown) is not finished


def part_of(found: Iterator[Row]) -> Parts:
    """Returns parts that all yield these rows."""
    fake: Any = SimpleNamespace(rows=lambda part, note: found)
    return fake


def test_a_part_that_fails_keeps_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[Row]:
        yield MET["large"][0]
        raise Failed("no memory")

    record = Record(None, HERE)
    assert throughput.run("large", part_of(rows()), record) == 2
    assert record.parts == {"large": MET["large"]} and record.took_s == {}
    said = capsys.readouterr()
    assert "not measured" in said.out and "no memory" in said.err


def test_a_skipped_part_misses_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[Row]:
        raise Skipped("1 GPU here")
        yield

    record = Record(None, HERE)
    assert throughput.run("devices", part_of(rows()), record) == 0
    assert record.parts == {} and "skipped: 1 GPU here" in capsys.readouterr().out


@pytest.mark.parametrize(("took", "status"), [(12.0, 0), (21.0, 1)])
def test_a_measured_part_is_recorded_and_printed(took: float, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    row, record = Large("a", 6.0, 55, took), Record(None, HERE)
    assert throughput.run("large", part_of(iter([row])), record) == status
    assert record.parts == {"large": [row]} and "large" in record.took_s and line(row) in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [
    ("--part", "none"), ("--stock", "0"), ("--stock", "3", "--solutions", "2"), ("--gib", "0"), ("--gib", "nan"),
])
def test_invalid_options_are_rejected(wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as left:
        options(*wrong)
    assert left.value.code == 2


def test_every_copy_of_a_bundled_solution_has_a_distinct_source(tmp_path: Path) -> None:
    originals = planted.bundled()
    suite = planted.suite(tmp_path, 2 * len(originals) + 1)
    assert len(originals) > 4 and [each.problem for each in suite] == [each.problem for each in
                                                                       [*originals, *originals, originals[0]]]
    texts = [each.path.read_text() for each in suite]
    assert len(set(texts)) == len(suite) == len({str(each) for each in suite})
    for number, (solution, text) in enumerate(zip(suite, texts, strict=True)):
        ast.parse(text)
        original = originals[number % len(originals)].path.read_text()
        assert text.replace(f"// copy {number}\n", "", 1) == original != text
        assert solution.path == tmp_path / solution.problem / f"{solution.name}.py"


@pytest.mark.parametrize("text", ["x = 1\n", 'CUDA_SOURCE = """\n"""\nCUDA_SOURCE = r"""\n"""\n'])
def test_a_solution_needs_one_source_to_be_numbered(text: str) -> None:
    with pytest.raises(ValueError, match="CUDA_SOURCE"):
        planted.numbered(text, 1)


@pytest.mark.parametrize("number", [1, 3, 4])
def test_chosen_bundled_solutions_are_spread_over_all(number: int) -> None:
    originals = planted.bundled()
    chosen = planted.bundled(number)
    assert len(set(chosen)) == number and chosen[0] == originals[0]
    assert chosen == sorted(chosen, key=originals.index)
    assert number == 1 or originals.index(chosen[-1]) >= len(originals) // 2


def test_copies_share_their_build(tmp_path: Path) -> None:
    files = list(planted.copies(tmp_path, 3).glob("*/*.py"))
    assert len(files) == 3 and len({file.read_text() for file in files}) == 1


def test_numbered_requests_differ_only_in_their_source() -> None:
    request = BuildRequest("a", ("int f();",), ("int f() { return 1; }",), {"f": "f"})
    first, second = (planted.numbered_request(request, number) for number in (1, 2))
    assert first.cuda_sources != second.cuda_sources and first.cuda_sources[1:] == request.cuda_sources
    assert replace(first, cuda_sources=request.cuda_sources) == request


def test_the_large_problem_has_the_requested_size(tmp_path: Path) -> None:
    planted.large(tmp_path / "problems", tmp_path / "solutions", 6.0)
    text = (tmp_path / "problems" / "add_three.py").read_text()
    assert f"\nN = {2**29}\n" in text and "SHAPES = {\"small\": {\"N\": 4096}}" in text
    ast.parse((tmp_path / "solutions" / "add_three" / "plain.py").read_text())


@pytest.mark.parametrize(("evaluations", "expected"), [
    (4, [(False, 2), (True, 2), (False, 2), (True, 2)]), (1, [(False, 1), (True, 1)]),
    (3, [(False, 2), (True, 2), (False, 1), (True, 1)]),
])
def test_idle_and_busy_evaluations_alternate(evaluations: int, expected: list[tuple[bool, int]]) -> None:
    assert turns(evaluations) == expected


def test_stock_builds_have_a_clean_environment(tmp_path: Path) -> None:
    given = {"MAX_JOBS": "1", "CUDA_HOME": "/cuda", "PATH": "/bin", "TORCH_EXTENSIONS_DIR": "/old", "KEPT": "yes"}
    found = stock_environment(given, tmp_path, ("90", "120"))
    assert found.pop("PATH").endswith(":/bin")
    assert found == {"CUDA_HOME": "/cuda", "KEPT": "yes", "TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions"),
                     "TORCH_CUDA_ARCH_LIST": "9.0;12.0"}


PROBLEM = '''\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
'''
SOLUTION = '''\
import time
import torch
import torch.utils.cpp_extension

print("output of the solution, which is not JSON")
torch.utils.cpp_extension.load_inline("no", "arguments", no_implicit_headers=True) if {builds} else None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + {added}
'''


def stock_run(folder: Path, monkeypatch: pytest.MonkeyPatch, added: str = "x", builds: bool = False) -> StockRun:
    (folder / "problem.py").write_text(PROBLEM)
    (folder / "solution.py").write_text(SOLUTION.format(added=added, builds=builds))
    monkeypatch.setattr(processes, "problem_of", lambda solution: folder / "problem.py")
    solution = Solution("problem", "solution", folder / "solution.py")
    return StockRun(solution, Machine("cpu", {}, (), 0, 2), folder / "it")


@pytest.mark.slow
def test_the_simple_harness_evaluates_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stock_run(tmp_path, monkeypatch)
    try:
        build_s, after_s = run.built()
        assert build_s == 0 < after_s and run.finish() > 0
    finally:
        run.close()


@pytest.mark.slow
def test_the_simple_harness_fails_if_outputs_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stock_run(tmp_path, monkeypatch, added="1")
    run.built()
    with pytest.raises(Failed, match="outputs differ"):
        run.finish()
    run.close()


@pytest.mark.slow
def test_the_simple_harness_reports_a_failed_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stock_run(tmp_path, monkeypatch, builds=True)
    with pytest.raises(Failed, match=r"(?s)ended too early.*arguments"):
        run.built()
    run.close()


class FakeRun:
    """Replaces a process of the simple harness, and records the calls of its methods."""

    def __init__(self, solution: Solution, machine: Machine, folder: Path) -> None:
        self.name, self.told = solution.name, [f"start {solution.name}"]
        TOLD.append(self.told)

    def built(self) -> tuple[float, float]:
        self.told.append("built")
        return 60.0, 64.0

    def finish(self) -> float:
        self.told.append("finish")
        return 6.0

    def close(self) -> None:
        self.told.append("close")


TOLD: list[list[str]] = []


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The recorded calls of each process of the simple harness, in the order of their starts."""
    monkeypatch.setattr(throughput_parts, "StockRun", FakeRun)
    TOLD.clear()
    return TOLD


def machine(cores: int = 16, gpus: int = 1) -> Machine:
    return Machine("cuda", HERE, ("90",), gpus, cores)


def test_each_solution_runs_once_in_the_simple_harness(told: list[list[str]], tmp_path: Path) -> None:
    stock = Stock([Solution("p", name, tmp_path) for name in "abc"], machine(), tmp_path)
    assert stock.figures(0) == StockFigures(60.0, 70.0, beside=False) == stock.figures(0)
    stock.start_beside(2)
    stock.start_beside(2)
    assert told == [["start a", "built", "finish", "close"], ["start b"]]
    assert stock.figures(2) == StockFigures(60.0, 70.0, beside=False)
    assert stock.figures(1) == StockFigures(60.0, 70.0, beside=True)
    assert told[1:] == [["start b", "built", "finish", "close"], ["start c", "built", "finish", "close"]]
    stock.start_beside(3)
    assert len(told) == 3


def test_a_background_build_is_ended_on_close(told: list[list[str]], tmp_path: Path) -> None:
    stock = Stock([Solution("p", "a", tmp_path)], machine(), tmp_path)
    stock.start_beside(1)
    stock.close()
    assert told == [["start a", "close"]]


@pytest.mark.parametrize(("cores", "started"), [(16, 1), (4, 0)])
def test_there_is_no_background_build_with_few_cores(
    cores: int, started: int, told: list[list[str]], tmp_path: Path
) -> None:
    Parts(options(), machine(cores), tmp_path).start_beside()
    assert len(told) == started


def test_builds_are_compared_in_parallel_and_alone(
    told: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: list[int] = []
    monkeypatch.setattr(throughput_parts, "request_of", lambda path: path)
    monkeypatch.setattr(throughput_parts, "service", lambda cache, archs, jobs: services.append(jobs) or jobs)
    monkeypatch.setattr(throughput_parts, "precompile", lambda builder: 20.0)
    monkeypatch.setattr(throughput_parts, "numbered_request", lambda request, number: request)
    monkeypatch.setattr(throughput_parts, "build", lambda builder, request: (10.0 + builder, "slim"))
    noted: list[Row] = []
    names = [str(solution) for solution in planted.bundled()]
    rows = list(Parts(options("--bundled", "999"), machine(), tmp_path).builds(noted.append))
    at_once, left = 5, len(names) % 5  # three of 16 cores for each build
    beside = [at_once - 1] * (len(names) - left) + [left - 1] * left
    assert rows == [*(Built(name, each, 60.0, 20.0, 15.0, "slim") for name, each in zip(names, beside, strict=True)),
                    Built(f"median of {len(names)}", ratios=[4.0] * len(names)),
                    Built(f"{names[0]}, alone", 0, 60.0, 20.0, 15.0, "slim"),
                    Built(f"{names[0]}, alone, the first of a cache", 0, 60.0, None, 11.0, "slim")]
    assert services == [at_once, 1]
    assert noted == [replace(row, precompiling_s=None, ours_s=None, headers="") for row in rows[:-1] if not row.ratios]
    assert all(each[1:] == ["built", "close"] for each in told[: len(names)])  # they do not use the GPU
    assert len(told) == len(names) + 1


def test_the_suite_extrapolates_from_the_measured_solutions(
    told: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(throughput_parts, "run_eval", lambda *words: commands.append(list(map(str, words))) or 100.0)
    parts = Parts(options("--stock", "3"), machine(), tmp_path)
    parts.start_beside()
    noted: list[Any] = []
    [row] = parts.suite(noted.append)
    assert row == Suite("16 solutions", 16, 100.0, [70.0, 70.0, 70.0], 1) and row.met
    assert isinstance(row, Suite) and row.stock_all_s == pytest.approx(16 * 70)
    assert [each.beside for each in noted] == [1, 1, 1] and noted[-1].ours_s is None
    [command] = commands
    assert command[-4:] == ["--cache", str(tmp_path / "suite-cache"), "--solutions", str(tmp_path / "suite")]


def test_further_solutions_are_compared_with_a_run_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([6.0, 14.0, 8.0, 32.0])
    commands: list[str] = []

    def run_eval(*words: Any) -> float:
        commands.append(" ".join(map(str, words)))
        return next(answers)

    monkeypatch.setattr(throughput_parts, "run_eval", run_eval)
    rows = list(Parts(options(), machine(), tmp_path).further(lambda row: None))
    assert rows == [Further("--check", False, 8, 6.0, 14.0), Further("with times", True, 8, 8.0, 32.0)]
    assert ["--check" in each for each in commands] == [True, True, False, False]
    assert [each.rpartition("copies-")[2] for each in commands] == ["1", "9", "1", "9"]


def test_the_part_devices_is_skipped_with_one_gpu(tmp_path: Path) -> None:
    with pytest.raises(Skipped, match="1 GPU here"):
        list(Parts(options(), machine(), tmp_path).devices(lambda row: None))


class FakeService:
    """Builds until it is closed, or fails at once if it has a reason."""

    def __init__(self, reason: str = "") -> None:
        self.requests: list[BuildRequest] = []
        self.closed = threading.Event()
        self._reason = reason

    def build(self, request: BuildRequest) -> BuildOutcome:
        self.requests.append(request)
        if not self._reason:
            self.closed.wait(60)
        return BuildOutcome(None, self._reason or "it was killed")

    def close(self) -> None:
        self.closed.set()


def builds(fake: FakeService, monkeypatch: pytest.MonkeyPatch, numbers: Iterator[int] | None = None) -> Builds:
    monkeypatch.setattr(processes, "service", lambda *_: fake)
    monkeypatch.setattr(processes, "HEAD_START_S", 0.2)
    return Builds(BuildRequest("a", cuda_sources=("x",)), 3, Path("cache"), ("90",), numbers)


def test_distinct_builds_are_kept_running(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, fakes = itertools.count(), [FakeService(), FakeService()]
    for fake in fakes:
        with builds(fake, monkeypatch, numbers) as running:
            assert running.begun == len(fake.requests) == 3
        assert fake.closed.is_set() and running.begun == 3
    assert len({request.cuda_sources for fake in fakes for request in fake.requests}) == 6


def test_a_failed_background_build_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="no compiler"), builds(FakeService("no compiler"), monkeypatch):
        pass


def test_the_file_of_figures_is_standard_json(tmp_path: Path) -> None:
    record = Record(tmp_path / "figures.json", HERE)
    for part in PARTS:
        record.begin(part)
        record.put(part, KINDS[part]("nothing yet"))
    text = (tmp_path / "figures.json").read_text()
    assert "NaN" not in text and json.loads(text)["environment"] == HERE
