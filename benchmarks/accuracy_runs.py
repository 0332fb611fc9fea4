"""Speedups of whole evaluations: the parts of timing_accuracy.py in which the harness starts its own processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from accuracy_bars import DIFFER_BY, Differing, Evaluated, Repeated, SelfCompared
from accuracy_gpu import SPIN_KERNEL, Bench, Failed, Work, calibrate

from inlinebench import catalog
from inlinebench.cli import arguments as command_line
from inlinebench.options import ROOT, Options
from inlinebench.problem import problem_file
from inlinebench.report.terminal.progress import Progress
from inlinebench.results.library import counted
from inlinebench.results.result import Result
from inlinebench.results.result_json import from_json
from inlinebench.scheduler.executor import LocalExecutor
from inlinebench.scheduler.plan import Choice, choose
from inlinebench.scheduler.session import Session

Note = Callable[[Evaluated | Repeated], None]
"""Called with an unfinished row, so that its figures are kept."""

REPEATED = (
    ("matmul_diag/naive",),
    ("matmul_diag/naive", "--set", "N=512", "--set", "M=512"),
)
"""A solution that takes well over 20 µs on the device, and one that takes a few µs."""
LONGEST_RUN_S = 900.0
IN_A_RUN = 10
"""Evaluations in each run. Each run has its own judge, whose process adds its own overhead to a chain of kernels."""
MOST_FAILURES = 3
"""After this many failures without a success, the part ends: the other evaluations would fail too."""

CHAIN_US = 200.0
FIRST_STEPS = 4
CALIBRATING_CALLS = 25

PROBLEM = '''\
"""A chain of matrix products. Work within L2 would vary by some percent with the addresses of buffers."""

import torch
from torch import nn

SIDE = 1024
STEPS = {steps}


class Model(nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            x = x @ w
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE) / SIDE**0.5]


def get_init_inputs() -> list[object]:
    return []
'''

SOLUTION = '''\
"""The same chain, followed by a spin kernel."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

STEPS = {steps}
CYCLES = {cycles}

CUDA_SOURCE = r"""{kernel}
void spin(int64_t cycles) {{
  accuracy_spin<<<1, 1>>>(cycles, nullptr);
}}
"""

extension = load_inline(
    name="accuracy_spin", cpp_sources="void spin(int64_t cycles);", cuda_sources=CUDA_SOURCE, functions=["spin"]
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            x = x @ w
        extension.spin(CYCLES)
        return x
'''


def repeat(arguments: Sequence[str], processes: int, note: Note) -> Iterator[Repeated]:
    """Part `repeat`: a new run of run_eval.py for each figure. `arguments` are for all runs."""
    for given in REPEATED:
        row = Repeated(" ".join(given))
        for _ in range(processes):
            result = _in_own_process([*given, *arguments])
            if result.timing is None:
                raise Failed(f"{row.what}: {result.verdict}: {result.reason or 'no times'}")
            row.solution_us.append(result.timing.solution_ms.median * 1e3)
            row.speedups.append(result.timing.speedup.median)
            note(row)
        yield row


def _in_own_process(arguments: Sequence[str]) -> Result:
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
        out = Path(folder) / "out.jsonl"
        command = [sys.executable, str(ROOT / "run_eval.py"), *arguments, "--quiet", "--out", str(out)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LONGEST_RUN_S, stdin=subprocess.DEVNULL
        )
        lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    results = counted([from_json(line) for line in lines])
    if len(results) != 1:
        raise Failed(f"{' '.join(command)} exited with status {done.returncode}, {len(results)} results:\n"
                     f"{done.stderr}")
    return results[0]


def against_itself(given: Sequence[str], arguments: Sequence[str], number: int, note: Note) -> Iterator[SelfCompared]:
    """Part `aa`: `given` are arguments of run_eval.py that name a reference."""
    row = SelfCompared(" ".join(given))
    _evaluate(row, [*given, "--allow-library", *arguments], number, note)
    yield row


def differ(bench: Bench, folder: Path, arguments: Sequence[str], number: int, note: Note) -> Iterator[Differing]:
    """Part `differ`: a chain of matrix products, compared with the same chain and a spin kernel, in `folder`."""
    problem, solution = folder / "problems" / "chain.py", folder / "solutions" / "chain" / "slower.py"
    for path in (problem, solution):
        path.parent.mkdir(parents=True)
    with torch.no_grad():
        steps = max(1, round(FIRST_STEPS * CHAIN_US / _chain_us(bench, problem)))
        cycles, slower = calibrate(bench, _chain(bench, problem, steps), DIFFER_BY, CALIBRATING_CALLS)
    solution.write_text(SOLUTION.format(steps=steps, cycles=cycles, kernel=SPIN_KERNEL))
    row = Differing(f"chain of {steps} matrix products", slower=slower)
    folders = ["--problems", str(problem.parent), "--solutions", str(solution.parent.parent)]
    _evaluate(row, ["chain/slower", *folders, "--allow-library", *arguments], number, note)
    yield row


def _chain(bench: Bench, problem: Path, steps: int) -> Work:
    """Writes the problem with this many steps, and returns its reference as the judge runs it."""
    problem.write_text(PROBLEM.format(steps=steps))
    module = problem_file.load(problem)
    model = problem_file.construct(module).to(bench.device)
    inputs = [tensor.to(bench.device) for tensor in problem_file.inputs(module)]
    return lambda: model(*inputs)


def _chain_us(bench: Bench, problem: Path) -> float:
    work = _chain(bench, problem, FIRST_STEPS)
    bench.warm(work)
    time_us = bench.time(work)
    if time_us is None:
        raise Failed("the chain cannot be queued behind the blocking kernel")
    return time_us


def _evaluate(row: Evaluated, arguments: Sequence[str], number: int, note: Note) -> None:
    """Makes `number` evaluations, a few in each run, and adds them to the row. Raises Failed if the first ones fail."""
    wanted = command_line.parse(arguments)
    choices = choose(wanted, catalog.read(wanted.problems, wanted.solutions))
    for begin in range(0, number, IN_A_RUN):
        _run(row, wanted, choices * min(IN_A_RUN, number - begin), note)


def _run(row: Evaluated, wanted: Options, choices: Sequence[Choice], note: Note) -> None:
    with (
        Progress(quiet=not sys.stderr.isatty()) as progress,
        Session(wanted, choices, progress, LocalExecutor(wanted, progress)) as session,
    ):
        begin = time.monotonic()
        for result in session.results():
            row.seconds.append(time.monotonic() - begin)
            add(row, result)
            note(row)
            progress.finished(result)
            if len(row.failures) >= MOST_FAILURES and not row.intervals:
                raise Failed(f"{row.what}: {row.failures[-1]}\n{result.log or ''}")
            begin = time.monotonic()


def add(row: Evaluated, result: Result) -> None:
    """Adds an evaluation to a row."""
    if result.timing is None:
        row.failures.append(f"{result.verdict}: {result.reason}" if result.reason else "it has no times")
        return
    speedup = result.timing.speedup
    row.intervals.append([speedup.low, speedup.median, speedup.high])
