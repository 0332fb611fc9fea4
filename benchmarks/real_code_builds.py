"""Builds solutions for real_code.py, by the harness's `--build-only` and by stock torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from real_code_rows import Build, End, Maker
from throughput_processes import stock_environment

from inlinebench import catalog
from inlinebench.builds.report import BuildReport
from inlinebench.builds.request import BuildOutcome, BuildRequest
from inlinebench.cli import arguments as command_line
from inlinebench.compile.log import errors as errors_in
from inlinebench.compile.log import last_words
from inlinebench.compile.service import BuildService
from inlinebench.report.terminal.progress import Progress
from inlinebench.results.result import Verdict
from inlinebench.scheduler import build_only
from inlinebench.scheduler.build_only import BuildOnly
from inlinebench.scheduler.plan import choose
from inlinebench.wire.processes import kill_tree

OUT_OF_TIME = "real_code.py: not started within --time-limit"
UNLOADABLE = re.compile(r"undefined symbol|cannot open shared object|ImportError")
"""Errors of stock `load_inline` when it imports a library that it has built."""
LONGEST_REASON = 2000
STOCK = Path(__file__).with_name("real_code_stock.py")


@dataclass(frozen=True)
class Task:
    """The solutions to build, and how."""

    folder: Path
    """The folder with problems/ and solutions/."""
    architectures: tuple[str, ...]
    """The compute capabilities to build for, as nvcc writes them. None means the CPU."""
    jobs: int
    """The number of parallel builds."""
    timeout: float
    """The time limit of a build, in seconds."""
    until: float
    """The time, by `time.monotonic()`, after which no build starts."""

    @property
    def problems(self) -> Path:
        return self.folder / "problems"

    @property
    def solutions(self) -> Path:
        return self.folder / "solutions"


class TimedService(BuildService):
    """A build service whose `BuildOutcome.seconds` is the time that a solution waits for its library.

    Unlike the service's own figure, it includes second tries and the precompiling of headers.
    """

    def __init__(self, until: float, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._until = until

    def build(self, request: BuildRequest) -> BuildOutcome:
        if time.monotonic() >= self._until:
            return BuildOutcome(None, OUT_OF_TIME)
        begin = time.monotonic()
        outcome = super().build(request)
        return replace(outcome, seconds=time.monotonic() - begin)


def by_harness(task: Task, names: Sequence[str], cache: Path) -> Iterator[Build]:
    """Builds solutions like `run_eval.py --build-only`. Yields those that were started in time.

    Raises what `BuildOnly` raises.
    """
    if not names or time.monotonic() >= task.until:
        return
    target = ["--arch", ",".join(task.architectures)] if task.architectures else ["--device", "cpu"]
    options = command_line.parse([
        *names, "--build-only", *target, "--problems", str(task.problems), "--solutions", str(task.solutions),
        "--cache", str(cache), "--jobs", str(task.jobs), "--build-timeout", str(task.timeout),
        "--timeout", str(task.timeout),
    ])
    choices = choose(options, catalog.read(options.problems, options.solutions))
    # A run does not report how long a solution waits for a build, so a service that measures it replaces the usual one.
    timed = patch.object(build_only, "BuildService", partial(TimedService, task.until))
    with timed, Progress(quiet=True) as progress, BuildOnly(options, choices, progress) as session:
        for built in session.builds():
            if not any(outcome.reason == OUT_OF_TIME for outcome in built.builds):
                yield of_harness(built)


def of_harness(built: BuildReport) -> Build:
    """Converts the report of `--build-only` on a solution."""
    headers = dict.fromkeys(outcome.headers.partition(",")[0] for outcome in built.builds)
    return Build(
        Maker.HARNESS, f"{built.problem}/{built.solution}", _end(built), sum(each.seconds for each in built.builds),
        len(built.builds), built.reason[:LONGEST_REASON], ", ".join(headers),
        second_try=any(each.headers.startswith("full") for each in built.builds),
        cached=any(each.cached for each in built.builds), state=str(built.state),
    )


def _end(built: BuildReport) -> End:
    if any(outcome.verdict is Verdict.TIMED_OUT for outcome in built.builds):
        return End.HUNG
    if any(outcome.library is None for outcome in built.builds):
        return End.FAILED
    if not built.builds:
        return End.NONE
    return End.FAILED if UNLOADABLE.search(built.reason) else End.BUILT


def by_stock(task: Task, names: Iterable[str], folder: Path) -> Iterator[Build]:
    """Builds each solution by torch's own `load_inline`, without a cache. Yields those that were started in time."""
    with ThreadPoolExecutor(task.jobs) as pool:
        for done in pool.map(lambda name: _stock(task, name, folder / name.replace("/", "-")), names):
            if done is not None:
                yield done


def _stock(task: Task, name: str, folder: Path) -> Build | None:
    if time.monotonic() >= task.until:
        return None
    folder.mkdir(parents=True)
    problem = task.problems / f"{name.partition('/')[0]}.py"
    command = [sys.executable, str(STOCK), str(task.solutions / f"{name}.py"), str(problem)]
    # Hides the GPU, as in the harness's candidates, so that solutions that need one fail in both.
    environment = {**stock_environment(os.environ, folder, task.architectures), "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment, cwd=folder, start_new_session=True,
    )
    hung = False
    try:
        said, _ = process.communicate(timeout=task.timeout)
    except subprocess.TimeoutExpired:
        hung = True
        kill_tree(process.pid)
        said, _ = process.communicate()
    shutil.rmtree(folder, ignore_errors=True)
    return of_stock(name, said, task.timeout if hung else None, process.returncode)


def of_stock(name: str, said: str, timeout: float | None, status: int) -> Build:
    """Converts the output of real_code_stock.py for a solution, which was killed after `timeout` seconds unless None.

    A solution that is killed between builds did not hang in a build: some constructors take minutes.
    """
    facts = [json.loads(line) for line in said.splitlines() if line.endswith("}")]
    calls = [each for each in facts if "seconds" in each]
    errors = [each["error"] for each in calls if each["error"]]
    raised = "".join(each["raised"] for each in facts if "raised" in each)
    if timeout is not None and sum("begun" in each for each in facts) > len(calls):
        end, reason = End.HUNG, f"killed after {timeout:g} s"
    elif errors:
        end, reason = End.FAILED, first_error(errors[0])
    else:
        end = End.BUILT if calls else End.NONE
        reason = first_error(raised) if raised else "" if facts and "raised" in facts[-1] else f"exited with {status}"
    return Build(Maker.STOCK, name, end, sum(each["seconds"] for each in calls), len(calls), reason[:LONGEST_REASON])


def first_error(text: str) -> str:
    """Returns the first error in a compiler's output, or else the last line of a text."""
    found = errors_in(text)
    return found[0].text if found else last_words(text)


def verdicts(path: Path) -> Mapping[str, str]:
    """Returns the verdicts of a verdicts.tsv by solution; empty if the file does not exist."""
    if not path.exists():
        return {}
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {f"{row[0]}/{row[1]}": row[2] for row in rows if len(row) == 3}
