"""The processes, sessions and build services that throughput.py starts and times."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

from throughput_planted import numbered_request, problem_of

from inlinebench import catalog
from inlinebench.builds.request import BuildRequest
from inlinebench.catalog import Solution
from inlinebench.cli import arguments as command_line
from inlinebench.compile import toolchain
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.device_kinds import kind_of
from inlinebench.devices.registry import target_for
from inlinebench.options import ROOT
from inlinebench.report.terminal.progress import Progress
from inlinebench.results.result import Result, Verdict
from inlinebench.sandbox.policy import Sandbox
from inlinebench.sandbox.self_test import available
from inlinebench.scheduler.executor import LocalExecutor
from inlinebench.scheduler.plan import choose
from inlinebench.scheduler.session import Session
from inlinebench.wire.processes import kill_tree

LONGEST_S = 400.0
"""The time limit of a process or a build, in seconds."""
LAST_LINES = 15
HEAD_START_S = 1.0
"""Seconds until compilers that were just started are busy."""
STOCK = Path(__file__).with_name("throughput_stock.py")

FACTS = """
import json, sys
from dataclasses import asdict
import torch
from inlinebench.devices.base import UnusableDevice
from inlinebench.devices.registry import of, resolve
from inlinebench.results.result import Environment
from inlinebench.version import __version__
try:
    device = of(resolve(sys.argv[1]))
except UnusableDevice as error:
    sys.exit(str(error))
gpus = torch.cuda.device_count() if device.kind.times_are_comparable else 0
environment = asdict(device.environment(Environment(torch=torch.__version__, harness=__version__)))
print(json.dumps([environment, device.architectures(), gpus]))
"""
RECORD = """
import json, runpy, sys
from inlinebench.candidate import load_inline
def build(facts):
    print(json.dumps(facts), flush=True)
    sys.exit(0)  # leaves the solution's import or constructor
load_inline.install(build)
problem, solution = (runpy.run_path(path) for path in sys.argv[1:])
solution["ModelNew"](*problem["get_init_inputs"]())
"""


class Failed(Exception):
    """A part could not be measured; the text says why."""


@dataclass(frozen=True)
class Machine:
    """The device and its machine. `cores` are those that this process may use."""

    device: str
    environment: Mapping[str, Any]
    architectures: tuple[str, ...]
    gpus: int
    cores: int

    @classmethod
    def look(cls, device: str) -> Machine:
        """Inspects a device in another process, so that this one does not occupy the GPU.

        Raises Failed if there is no such device.
        """
        environment, architectures, gpus = json.loads(_python(FACTS, device).stdout.splitlines()[-1])
        cores = len(os.sched_getaffinity(0))
        known = {name: fact for name, fact in environment.items() if fact is not None}
        return cls(device, {**known, "gpus": gpus, "cores": cores}, tuple(architectures), gpus, cores)


def timed(command: Sequence[str | Path]) -> float:
    """Returns the seconds of a process from start to exit. Raises Failed if its exit status is not 0."""
    begin = time.monotonic()
    _run(command)
    return time.monotonic() - begin


def run_eval(*arguments: str | Path) -> float:
    """Returns the seconds of a run of run_eval.py, whose evaluations must pass. Raises Failed."""
    return timed([sys.executable, ROOT / "run_eval.py", *arguments])


def request_of(solution: Solution) -> BuildRequest:
    """Returns the first build that a bundled solution requests during import and construction.

    Raises Failed if it requests none.
    """
    said = _python(RECORD, str(problem_of(solution)), str(solution.path)).stdout.splitlines()
    if not said:
        raise Failed(f"{solution} builds nothing")
    return BuildRequest.from_json(json.loads(said[-1]))


def service(cache: Path, architectures: Sequence[str], jobs: int) -> BuildService:
    """Returns a build service as in a session, with `jobs` parallel builds."""
    sandbox = Sandbox(tuple(map(str, available())), (str(ROOT),))
    target = target_for(kind_of("cuda" if architectures else "cpu"), architectures)
    return BuildService(cache, target, BuildSettings(LONGEST_S, jobs, sandbox=sandbox))


def precompile(builder: BuildService) -> float:
    """Precompiles headers and returns the seconds. Raises Failed."""
    begin = time.monotonic()
    if not builder.precompile():
        raise Failed("the headers cannot be precompiled")
    return time.monotonic() - begin


def build(builder: BuildService, request: BuildRequest) -> tuple[float, str]:
    """Builds a request that is not in the cache. Returns the seconds and the used headers. Raises Failed."""
    begin = time.monotonic()
    outcome = builder.build(request)
    took = time.monotonic() - begin
    if outcome.library is None or outcome.cached:
        raise Failed(f"{request.name}: {outcome.reason or 'it was built before'}\n{outcome.log[-2000:]}")
    return took, outcome.headers


@contextmanager
def session(arguments: Sequence[str | Path], repeats: int = 1) -> Iterator[Iterator[Result]]:
    """Yields the results of a run in this process, whose judges have started. Each evaluation is made `repeats` times.

    A result that did not pass raises Failed.
    """
    wanted = command_line.parse([str(each) for each in arguments])
    choices = choose(wanted, catalog.read(wanted.problems, wanted.solutions)) * repeats
    with (
        Progress(quiet=True) as progress,
        Session(wanted, choices, progress, LocalExecutor(wanted, progress)) as running,
    ):
        yield (passed(result) for result in running.results())


def passed(result: Result) -> Result:
    """Returns the result. Raises Failed if it did not pass."""
    if result.verdict is not Verdict.PASSED:
        raise Failed(f"{result.problem}/{result.solution} {result.shape}: {result.verdict}: {result.reason}")
    return result


class StockRun:
    """A process of the simple harness with one solution. It starts at once, builds, and waits.

    Methods raise Failed if the process fails.
    """

    def __init__(self, solution: Solution, machine: Machine, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._name, self._log = str(solution), folder / "log"
        command = [sys.executable, STOCK, solution.path, problem_of(solution), machine.device, str(time.time())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=stock_environment(os.environ, folder, machine.architectures), start_new_session=True,
            )

    def built(self) -> tuple[float, float]:
        """Waits for the build. Returns the seconds inside `load_inline`, and those since the start of the process."""
        said = self._answer()
        return float(said["build_s"]), float(said["after_s"])

    def finish(self) -> float:
        """Evaluates the built solution. Returns the seconds until the end of the process."""
        begin = time.monotonic()
        try:
            self._stdin.write("go\n")
            self._stdin.flush()
        except OSError as error:
            raise Failed(f"stock {self._name} is gone: {error}\n{self._tail()}") from error
        said = self._answer()
        self._process.wait(LONGEST_S)
        if not said["matches"]:
            raise Failed(f"stock {self._name}: the outputs differ, so it didn't do the work")
        return time.monotonic() - begin

    def close(self) -> None:
        """Kills the process and its compilers, if it still runs."""
        if self._process.poll() is None:
            kill_tree(self._process.pid)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @property
    def _stdin(self) -> Any:
        assert self._process.stdin is not None
        return self._process.stdin

    def _answer(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        there, _, _ = select.select([stdout], [], [], LONGEST_S)
        line = stdout.readline() if there else ""
        if not line:
            why = "ended too early" if there else f"took longer than {LONGEST_S:g} s"
            raise Failed(f"stock {self._name} {why}\n{self._tail()}")
        return dict(json.loads(line))

    def _tail(self) -> str:
        return last_lines(self._log.read_text(errors="replace"))


def stock_environment(environment: Mapping[str, str], folder: Path, architectures: Sequence[str]) -> dict[str, str]:
    """Returns the environment for torch's own `load_inline`: an empty cache, this GPU's architecture, no limit on
    compilers, and the same ninja and CUDA toolkit as the harness."""
    taken = {name: value for name, value in environment.items() if name != "MAX_JOBS"}
    path = os.pathsep.join([sysconfig.get_path("scripts"), environment.get("PATH", os.defpath)])
    taken |= {"TORCH_EXTENSIONS_DIR": str(folder / "extensions"), "PATH": path}
    if architectures:
        taken["TORCH_CUDA_ARCH_LIST"] = ";".join(re.sub(r"(?=\d[af]?$)", ".", each) for each in architectures)
        taken.setdefault("CUDA_HOME", str(toolchain.cuda_home()))
    return taken


class Builds:
    """A context manager that keeps `at_a_time` distinct builds running.

    `numbers` makes them distinct, also from those of other instances with the same iterator.

    On exit, running builds are killed. Exiting raises Failed if a build failed before that.
    """

    def __init__(
        self, request: BuildRequest, at_a_time: int, cache: Path, architectures: Sequence[str],
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._request, self._at_a_time = request, at_a_time
        self._numbers = itertools.count() if numbers is None else numbers
        self._service = service(cache, architectures, at_a_time)
        self._lock, self._over = Lock(), Event()
        self._threads = [Thread(target=self._keep_building, daemon=True) for _ in range(at_a_time)]
        self._failures: list[str] = []
        self.begun = 0

    def __enter__(self) -> Builds:
        for thread in self._threads:
            thread.start()
        time.sleep(HEAD_START_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._service.close()
        for thread in self._threads:
            thread.join()
        if kind is None and self._failures:
            raise Failed(f"a background build failed: {self._failures[0]}")

    def _keep_building(self) -> None:
        while not self._over.is_set():
            with self._lock:
                request = numbered_request(self._request, next(self._numbers))
                self.begun += 1
            outcome = self._service.build(request)
            if outcome.library is None and not self._over.is_set():
                self._failures.append(outcome.reason)
                return


def last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "-c", code, *arguments])


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """Runs a command. Raises Failed if its exit status is not 0."""
    path = os.pathsep.join(filter(None, [str(ROOT / "harness"), os.environ.get("PYTHONPATH", "")]))
    words = [str(each) for each in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST_S,
                          stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        what = " ".join(word for word in words if "\n" not in word)  # without the code after -c
        raise Failed(f"{what} exited with status {done.returncode}\n{last_lines(done.stdout + done.stderr)}")
    return done
