"""Measures the cost of the defences against cheats: evaluations of honest solutions with and without them.

    python benchmarks/defences.py [NAME ...]     print a table; status 1 if the bar is missed

NAMEs are as for run_eval.py (default: two bundled solutions that are evaluated in seconds). Each solution is evaluated
several times in one run, with times: once with the defences, and once with `--trust`, which leaves out the sandbox and
the integrity checks. A figure is the median wall time of an evaluation in seconds, without the first one of a run,
which prepares the problem. A second table has the phases of the last evaluation.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench import catalog  # noqa: E402
from inlinebench.cli import arguments as command_line  # noqa: E402
from inlinebench.results.result import Verdict  # noqa: E402
from inlinebench.scheduler.executor import LocalExecutor  # noqa: E402
from inlinebench.scheduler.plan import choose  # noqa: E402
from inlinebench.scheduler.session import Session  # noqa: E402

NAMES = ("matmul_diag/naive", "gemm_scale_batchnorm/naive")
REPEATS = 4
BAR = 1.25
"""The largest ratio of wall times with and without the defences."""


@dataclass
class Phases:
    """Replaces the progress display, and records when each phase began."""

    begun: list[tuple[float, str]] = field(default_factory=list)

    def update(self, text: str) -> None:
        phase = " ".join(text.split()[2:4]) or "started"
        if not self.begun or self.begun[-1][1] != phase:
            self.begun.append((time.monotonic(), phase))

    def start(self, total: int) -> None:
        """Ignored."""

    def phase(self, text: str) -> None:
        """Ignored: prebuilds end before the first evaluation."""

    def line(self, text: str) -> None:
        """Ignored."""

    def take(self, end: float) -> dict[str, float]:
        """Returns the seconds of each phase since the last `take`. All calls of a solution are one phase."""
        found: dict[str, float] = {}
        for (begin, said), (until, _) in zip(self.begun, [*self.begun[1:], (end, "")], strict=True):
            name = "calls" if said.startswith("call ") else said
            found[name] = found.get(name, 0.0) + until - begin
        self.begun.clear()
        return found


def seconds(name: str, trust: bool, arguments: list[str]) -> tuple[float, dict[str, float]]:
    """Returns the median seconds of an evaluation, and the phases of the last one. Raises SystemExit if it fails."""
    wanted = command_line.parse([name, *arguments, *(["--trust"] if trust else [])])
    choices = choose(wanted, catalog.read(wanted.problems, wanted.solutions)) * (REPEATS + 1)
    phases: Any = Phases()
    took: list[float] = []
    found: dict[str, float] = {}
    with Session(wanted, choices, phases, LocalExecutor(wanted, phases)) as session:
        begin = time.monotonic()
        for result in session.results():
            if result.verdict is not Verdict.PASSED:
                raise SystemExit(f"{name}: {result.verdict}: {result.reason}")
            end = time.monotonic()
            took.append(end - begin)
            found, begin = phases.take(end), end
    return statistics.median(took[1:]), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    arguments = ["--device", given.device]
    rows, worst, details = [], 0.0, []
    for name in given.names or NAMES:
        (defended, phases), (trusting, bare) = (seconds(name, trust, arguments) for trust in (False, True))
        worst = max(worst, defended / trusting)
        rows.append([name, f"{defended:.2f}", f"{trusting:.2f}", f"{defended / trusting:.2f}", f"{BAR:.2f}"])
        details += [[name, phase, f"{phases.get(phase, 0.0):.2f}", f"{bare.get(phase, 0.0):.2f}"]
                    for phase in {**bare, **phases}]
    print(tabulate(rows, headers=["solution", "with (s)", "without (s)", "ratio", "bar"], disable_numparse=True))
    print("\n" + tabulate(details, headers=["solution", "phase", "with (s)", "without (s)"], disable_numparse=True))
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
