"""Runs `run_eval.py` in a new process, as a user does, and reads its results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inlinebench.results.result import Result
from inlinebench.results.result_json import from_json

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
LONGEST_S = 900.0
PYTHONPATH = os.pathsep.join([str(ROOT / "harness"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
"""The package of this checkout, and `tests`, which solutions of the tests import."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    status: int
    """The exit status."""
    out: str
    """The standard output."""
    err: str
    """The standard error."""
    results: list[Result] = field(default_factory=list)
    """The lines of `--out`, in order."""

    def row(self, problem: str, solution: str, shape: str | None = None) -> Result:
        """Returns the only result of a solution (at a shape)."""
        found = [row for row in self.results
                 if (row.problem, row.solution) == (problem, solution) and shape in (None, row.shape)]
        assert len(found) == 1, f"{len(found)} results of {problem}/{solution}\n{self.err}"
        return found[0]


def command(*arguments: str | Path) -> list[str]:
    """Returns the command line of a run."""
    return [sys.executable, str(ROOT / "run_eval.py"), *map(str, arguments)]


def run_eval(*arguments: str | Path, out: Path | None = None, environment: Mapping[str, str] | None = None) -> Run:
    """Makes a run and waits for its end. `environment` is added to this process's environment."""
    line = command(*arguments, *([] if out is None else ["--out", out]))
    done = subprocess.run(line, capture_output=True, text=True, timeout=LONGEST_S, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": PYTHONPATH, **(environment or {})})
    results = [from_json(text) for text in out.read_text().splitlines()] if out is not None and out.exists() else []
    return Run(done.returncode, done.stdout, done.stderr, results)
