"""The parts of throughput.py. Each measures, and yields its rows as they are finished."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import throughput_planted as planted
from accuracy_bars import Row
from throughput_planted import LARGE, PROBLEM, SOLUTION, SUM
from throughput_processes import (
    Builds,
    Failed,
    Machine,
    StockRun,
    build,
    numbered_request,
    precompile,
    request_of,
    run_eval,
    service,
    session,
    timed,
)
from throughput_rows import Built, Further, Large, Shared, Suite, Undisturbed, Warm

from inlinebench.catalog import FULL, Solution
from inlinebench.compile import toolchain
from inlinebench.options import Options

Note = Callable[[Row], None]
"""Called with an unfinished row, so that its figures are kept."""

SMALL, ODD = "small", "odd"
COLD = {"builds", "suite"}
"""Parts that start with an empty cache."""
CALLS = 50
BLOCK = 2
"""`undisturbed` alternates blocks of this many evaluations without and with builds, so that drift cancels."""
COMPILERS = 3
"""Cores for each build: one for the bindings, one for nvcc, and a spare one."""
AT_SMALL = 3
"""Factor for the evaluations of `undisturbed` at the shape `small`, whose kernel takes 1.5 to 1.7 µs, depending on the
process."""
PLENTY_OF_CORES = 12
"""With this many cores, a build (two compilers) on other cores does not disturb other measurements."""
IMPORT = {"cuda": "import torch; torch.cuda.synchronize()", "cpu": "import torch"}


class Skipped(Exception):
    """A part cannot be measured on this machine; the text says why."""


@dataclass(frozen=True)
class StockFigures:
    """Seconds of one solution in the simple harness."""

    build_s: float
    """Seconds inside `load_inline`."""
    total_s: float
    """Seconds of the whole process."""
    beside: bool
    """Whether it was built while something else was measured."""


class Stock:
    """Runs solutions in the simple harness on demand: one at a time, each once."""

    def __init__(self, solutions: Sequence[Solution], machine: Machine, folder: Path) -> None:
        self._solutions, self._machine, self._folder = solutions, machine, folder
        self._figures: dict[int, StockFigures] = {}
        self._beside: tuple[int, StockRun] | None = None

    def start_beside(self, number: int) -> None:
        """Starts to build the first of `number` solutions that has not run, in the background."""
        waiting = [index for index in range(number) if index not in self._figures]
        if waiting and self._beside is None:
            self._beside = waiting[0], self._start(waiting[0])

    def figures(self, index: int) -> StockFigures:
        """Returns the figures of a solution, after any build in the background. Raises Failed."""
        if self._beside is not None:
            (begun, run), self._beside = self._beside, None
            self._figures[begun] = self._take(run, beside=True)
        if index not in self._figures:
            self._figures[index] = self._take(self._start(index), beside=False)
        return self._figures[index]

    def close(self) -> None:
        """Ends the build in the background."""
        if self._beside is not None:
            self._beside[1].close()
            self._beside = None

    def _start(self, index: int) -> StockRun:
        return StockRun(self._solutions[index], self._machine, self._folder / str(index))

    @staticmethod
    def _take(run: StockRun, beside: bool) -> StockFigures:
        try:
            build_s, after_s = run.built()
            return StockFigures(build_s, after_s + run.finish(), beside)
        finally:
            run.close()


class Parts:
    """All parts on one machine. `given` are the options. All files are written to `folder`."""

    def __init__(self, given: argparse.Namespace, machine: Machine, folder: Path) -> None:
        self._given, self._machine, self._folder = given, machine, folder
        self._cache, self._suite_cache = folder / "cache", folder / "suite-cache"
        self._problems = folder / "problems"
        self._suite = planted.suite(folder / "suite", given.solutions)
        self._stock = Stock(self._suite, machine, folder / "stock")

    def prepare(self) -> float:
        """Builds what later parts need, and loads the compilers' headers into the page cache, so that the first part is
        not slower than the others. Returns the seconds. Raises Failed."""
        begin = time.monotonic()
        for header in toolchain.torch().include_dirs[0].rglob("*.h"):
            header.read_bytes()
        self._problems.mkdir()
        source = Options().problems / f"{PROBLEM}.py"
        (self._problems / source.name).write_bytes(source.read_bytes())
        for number in (1, 1 + self._given.further):
            planted.copies(self._copies(number), number)
        both = planted.copies(self._folder / "prepared", 2)  # runs of a single solution do not prebuild
        planted.large(self._problems, both, self._given.gib)
        if not set(self._given.parts) <= COLD:
            run_eval(*self._common("--problems", self._problems, "--solutions", both, "--shape", SMALL))
        return time.monotonic() - begin

    def start_beside(self) -> None:
        """Starts a stock build for later parts, if it does not disturb the next ones."""
        if self._machine.cores >= PLENTY_OF_CORES:
            self._stock.start_beside(self._given.stock)

    def close(self) -> None:
        """Ends the build in the background."""
        self._stock.close()

    def rows(self, part: str, note: Note) -> Iterator[Row]:
        """Yields the rows of a part as they are finished. Raises Skipped, Failed and what the harness raises."""
        parts = {"builds": self.builds, "warm": self.warm, "next": self.further, "large": self.large,
                 "suite": self.suite, "devices": self.devices, "undisturbed": self.undisturbed}
        return parts[part](note)

    def builds(self, note: Note) -> Iterator[Row]:
        """Part `builds`: parallel builds, as many as the cores allow, by torch and then by the harness; then one build
        of each alone, that of the harness also with an empty cache, without precompiled headers."""
        solutions = planted.bundled(min(self._given.bundled, len(planted.bundled())))
        with ThreadPoolExecutor() as pool:
            requests = list(pool.map(request_of, solutions))
        at_once = max(1, self._machine.cores // COMPILERS)
        together = service(self._folder / "together", self._machine.architectures, at_once)
        precompiling_s, ratios = precompile(together), list[float]()
        for begin in range(0, len(solutions), at_once):
            group = slice(begin, begin + at_once)
            rows = self._stock_builds(solutions[group], note)
            with ThreadPoolExecutor(at_once) as pool:
                built = pool.map(lambda each: build(together, each), requests[group])
                for stock, (ours_s, headers) in zip(rows, built, strict=True):
                    row = replace(stock, precompiling_s=precompiling_s, ours_s=ours_s, headers=headers)
                    ratios.append(row.faster)
                    yield row
        yield Built(f"median of {len(ratios)}", ratios=ratios)
        alone = Built(f"{solutions[0]}, alone", stock_s=self._stock.figures(0).build_s)
        note(alone)
        ours_s, headers = build(together, numbered_request(requests[0], 0))  # another number makes it a cold build
        yield replace(alone, precompiling_s=precompiling_s, ours_s=ours_s, headers=headers)
        ours_s, headers = build(service(self._folder / "alone", self._machine.architectures, 1), requests[0])
        yield replace(alone, what=f"{alone.what}, the first of a cache", ours_s=ours_s, headers=headers)

    def _stock_builds(self, solutions: Sequence[Solution], note: Note) -> list[Built]:
        """Returns the rows of parallel builds by torch."""
        rows = [Built(str(solution), beside=len(solutions) - 1) for solution in solutions]
        with ExitStack() as stack:
            runs = [StockRun(solution, self._machine, self._folder / "builds" / str(solution))
                    for solution in solutions]
            for run in runs:
                stack.callback(run.close)
            for index, run in enumerate(runs):
                rows[index] = replace(rows[index], stock_s=run.built()[0])
                note(rows[index])
        return rows

    def warm(self, note: Note) -> Iterator[Row]:
        """Part `warm`: alternates with processes that only import torch and start CUDA."""
        plain = [sys.executable, "-c", IMPORT[self._machine.device.partition(":")[0]]]
        row = Warm(f"run_eval.py {PROBLEM}/{SOLUTION} --check")
        timed(plain)  # reads torch's files once
        for _ in range(self._given.processes):
            row.plain_s.append(timed(plain))
            row.ours_s.append(run_eval(*self._common(f"{PROBLEM}/{SOLUTION}", "--check")))
            note(row)
        yield row

    def further(self, note: Note) -> Iterator[Row]:
        """Part `next`: a run of one solution, and a run of more, with and without times."""
        further = self._given.further
        for timing in (False, True):
            row = Further("with times" if timing else "--check", timing, further)
            how = self._common("--problems", self._problems, "--shape", SMALL, *(() if timing else ("--check",)))
            row = replace(row, one_s=run_eval(*how, "--solutions", self._copies(1)))
            note(row)
            yield replace(row, more_s=run_eval(*how, "--solutions", self._copies(1 + further)))

    def large(self, note: Note) -> Iterator[Row]:
        """Part `large`: the first evaluation of a session, including the preparation of its problem."""
        folders = ("--problems", self._problems, "--solutions", self._folder / "prepared")
        calls = ("--min-calls", str(CALLS), "--max-calls", str(CALLS))
        with session(self._common(f"{LARGE}/{SUM}", *folders, "--shape", FULL, *calls)) as results:
            begin = time.monotonic()
            result = next(results)
            took_s = time.monotonic() - begin
        assert result.check is not None
        yield Large(f"{LARGE}/{SUM}", self._given.gib, result.check.calls, took_s)

    def suite(self, note: Note) -> Iterator[Row]:
        """Part `suite`: some solutions in the simple harness, then all of them in this one."""
        row = Suite(f"{len(self._suite)} solutions", len(self._suite))
        for index in range(self._given.stock):
            figures = self._stock.figures(index)
            row.stock_s.append(figures.total_s)
            row = replace(row, beside=row.beside + figures.beside)
            note(row)
        yield replace(row, ours_s=self._suite_s)

    def devices(self, note: Note) -> Iterator[Row]:
        """Part `devices`: the suite on one device and on two. Raises Skipped with a single GPU."""
        two = "cpu,cpu" if self._machine.device == "cpu" else "0,1"
        if self._machine.device != "cpu" and self._machine.gpus < 2:
            raise Skipped(f"{self._machine.gpus} GPU here; --devices {two} needs two")
        _ = self._suite_s  # builds the suite
        # The first run on a GPU measures its peaks, which all later runs reuse.
        folders = ("--problems", self._problems, "--solutions", self._folder / "prepared", "--shape", SMALL)
        run_eval("--devices", two, "--cache", self._suite_cache, "--quiet", *folders)
        row = Shared(f"{len(self._suite)} solutions")
        row = replace(row, one_s=self._shared_s(two.partition(",")[0]))
        note(row)
        yield replace(row, two_s=self._shared_s(two))

    def undisturbed(self, note: Note) -> Iterator[Row]:
        """Part `undisturbed`: evaluations in a session for each shape, some of them during builds."""
        numbers = itertools.count()
        request = request_of(Solution(PROBLEM, SOLUTION, Options().solutions / PROBLEM / f"{SOLUTION}.py"))
        cache, targets = self._folder / "thrown-away", self._machine.architectures

        def builds() -> Builds:
            return Builds(request, self._given.builds, cache, targets, numbers)

        count = self._given.evaluations
        for shape, each in ((FULL if self._machine.device != "cpu" else ODD, count), (SMALL, AT_SMALL * count)):
            row = Undisturbed(f"{PROBLEM}/{SOLUTION} {shape}")
            with session(self._common(f"{PROBLEM}/{SOLUTION}", "--shape", shape), repeats=2 * each) as results:
                for busy, block in turns(each):
                    with builds() if busy else nullcontext() as running:
                        for result in itertools.islice(results, block):
                            if result.timing is None:
                                raise Failed(f"{row.what}: a result without times")
                            (row.busy_us if busy else row.idle_us).append(result.timing.solution_ms.median * 1e3)
                            note(row)
                    row = replace(row, builds=row.builds + (running.begun if running is not None else 0))
            yield row

    def _common(self, *more: str | Path) -> list[str | Path]:
        """Returns arguments of run_eval.py. A second --cache in `more` overrides the first."""
        return ["--device", self._machine.device, "--cache", self._cache, "--quiet", *more]

    def _copies(self, number: int) -> Path:
        return self._folder / f"copies-{number}"

    @cached_property
    def _suite_s(self) -> float:
        """The seconds of a run of the suite with an empty cache. Afterwards the suite is built."""
        return run_eval(*self._common("--cache", self._suite_cache, "--solutions", self._folder / "suite"))

    def _shared_s(self, devices: str) -> float:
        """Returns the seconds of the suite in a session on these devices, from the first job on."""
        folders = ("--cache", self._suite_cache, "--solutions", self._folder / "suite")
        with session(["--devices", devices, *folders]) as results:
            begin = time.monotonic()
            made = sum(1 for _ in results)
            took_s = time.monotonic() - begin
        if made < len(self._suite):
            raise Failed(f"{made} results for {len(self._suite)} solutions")
        return took_s


def turns(evaluations: int, block: int = BLOCK) -> list[tuple[bool, int]]:
    """Returns blocks of evaluations, alternately idle and with builds, as pairs of (with builds, length)."""
    blocks = [min(block, evaluations - begin) for begin in range(0, evaluations, block)]
    return [(busy, length) for length in blocks for busy in (False, True)]
