"""Sessions with an executor that evaluates nothing: which results a run has, and what it adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import pytest

from inlinebench.catalog import Catalog, Problem, Solution
from inlinebench.cli.merge import merge, missing
from inlinebench.messages import Evaluate, Jobs
from inlinebench.options import Options
from inlinebench.report.terminal.progress import Progress
from inlinebench.results.jsonl import JsonLines
from inlinebench.results.result import Environment, Result
from inlinebench.scheduler.identity import identity
from inlinebench.scheduler.plan import choose, rivals_of
from inlinebench.scheduler.session import Session

from ..report.samples import result

ON = Environment("2.11", "0.1", gpu="H100")
SPEEDUPS = {"library": 4.0, "fast": 6.0, "naive": 2.0}


class Planted:
    """An executor with one worker, whose results have planted speedups."""

    loses_workers = False
    workers: Sequence[str] = ("worker",)
    device = "cuda:0"

    def __init__(self, options: Options) -> None:
        self._options = options
        self.evaluated: list[str] = []

    def __enter__(self) -> Planted:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def key(self, job: Evaluate, worker: str) -> str | None:
        return identity(job, self._options, ON)

    def prebuild(self, jobs: Sequence[Evaluate], worker: str) -> dict[Path, Future[None]]:
        return {}

    def evaluate(self, worker: str, jobs: Jobs) -> list[Result]:
        return [self._evaluate(worker, job) for job in jobs]

    def _evaluate(self, worker: str, job: Evaluate) -> Result:
        self.evaluated.append(job.solution_name)
        row = result(f"{job.problem_name}/{job.solution_name}", speedup=SPEEDUPS[job.solution_name])
        return replace(row, key=self.key(job, worker))

    def replace(self, worker: str) -> bool:
        raise AssertionError


@pytest.fixture
def known(tmp_path: Path) -> Catalog:
    files = [tmp_path / f"{name}.py" for name in ("p", *SPEEDUPS)]
    for file in files:
        file.write_text(f"# {file.name}\n")
    return Catalog({"p": Problem("p", files[0])}, tuple(Solution("p", file.stem, file) for file in files[1:]))


def run(known: Catalog, options: Options) -> tuple[list[Result], list[str]]:
    """Returns the results of a run and the solutions that it evaluated. Appends the new results to `--out`."""
    executor, choices = Planted(options), choose(options, known)
    with Progress(quiet=True) as progress, Session(
        options, choices, progress, executor, rivals_of(options, known, choices)
    ) as session:
        new = list(session.results())
        if options.out is not None:
            with JsonLines(options.out) as file:
                for each in new:
                    file.write(each)
        return [*session.recalled, *new], executor.evaluated


def over_library(results: Sequence[Result]) -> dict[str, list[float]]:
    return {each.solution: [one.speedup.median for one in each.timing.baselines] for each in results if each.timing}


def test_the_others_have_their_speedup_over_the_library_solution(known: Catalog) -> None:
    expected = {"library": [], "fast": [1.5], "naive": [0.5]}
    results, evaluated = run(known, Options())
    assert over_library(results) == expected and evaluated[0] == "library"
    one, evaluated = run(known, Options(names=("p/fast",)))
    assert over_library(one) == {"library": [], "fast": [1.5]} and evaluated == ["library", "fast"]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_shards_have_the_column_and_are_merged_to_a_whole_run(known: Catalog, order: tuple[int, ...]) -> None:
    everything = Options(names=("p", "p/library"))
    parts = {part: run(known, replace(everything, shard=(part, 3)))[0] for part in order}
    assert [each.solution for each in parts[2] if each.shard is None] == ["library"]
    merged = merge(row for part in order for row in parts[part])
    assert [replace(row, shard=None) for row in merged] == merge(run(known, everything)[0])
    assert over_library(merged) == {"library": [], "fast": [1.5], "naive": [0.5]}
    assert missing(merged) == []
    assert missing(merge([*parts[2], *parts[3]])) == ["shard 1/3 has 0 of 1 results; run it again with --shard 1/3"]


def test_a_resumed_run_evaluates_again_what_is_compared_with_a_changed_library(known: Catalog, tmp_path: Path) -> None:
    options = Options(names=("p/fast",), out=tmp_path / "out.jsonl", resume=True)
    assert run(known, options)[1] == ["library", "fast"]
    results, evaluated = run(known, options)
    assert evaluated == [] and over_library(results) == {"library": [], "fast": [1.5]}
    (tmp_path / "library.py").write_text("# another call\n")
    assert run(known, options)[1] == ["library", "fast"]
    assert run(known, replace(options, names=("p/naive",)))[1] == ["naive"]
