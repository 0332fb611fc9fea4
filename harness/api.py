"""The harness from Python: one call, one result."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from harness import catalog
from harness.errors import UsageError
from harness.options import Options
from harness.result import Result


def evaluate(problem: str | Path, solution: str | Path, **settings: Any) -> Result:
    """Evaluates one solution against one problem and gives the result.

    `problem` is a name or the path of a problem file; `solution` is the path of a solution file or its source text.
    `settings` are fields of `harness.options.Options`, for example `device="cuda:0"`, `check=True`,
    `shapes=("small",)`; without a shape the result is for `full`.

    Raises UsageError for what can't be evaluated, NoDevice if the device can't be used.
    """
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
        path = _as_file(solution, Path(folder))
        chosen = {"shapes": (catalog.FULL,), **settings}
        return _run(Options(names=(str(problem),), solution_file=path, quiet=True, **chosen))


def _as_file(solution: str | Path, folder: Path) -> Path:
    if isinstance(solution, Path) or "\n" not in solution:
        return Path(solution)
    path = folder / "solution.py"
    path.write_text(solution, encoding="utf-8")
    return path


def _run(options: Options) -> Result:
    from harness.run.plan import choose
    from harness.run.progress import Progress
    from harness.run.session import Session

    choices = choose(options, catalog.read(options.problems, options.solutions))
    with Progress(quiet=True) as progress, Session(options, choices, progress) as session:
        results = [*session.recalled, *session.results()]
    if len(results) != 1:
        raise UsageError(f"one problem, one solution and one shape make one result; these make {len(results)}")
    return results[0]
