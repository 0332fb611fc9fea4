"""The harness from Python: one call, one result."""

from __future__ import annotations

from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from inlinebench.records import catalog
from inlinebench.records.options import Options
from inlinebench.records.result import Result


def evaluate(problem: str | Path, solution: str | Path, **settings: Any) -> Result:
    """Evaluates one solution against one problem and gives the result.

    `problem` is a name or the path of a problem file; `solution` is the path of a solution file or its source text. A
    result's times on the CPU say nothing of a GPU's, nor does the speedup that follows from them.
    `settings` are fields of `inlinebench.records.options.Options`, for example `device="cuda:0"`, `check=True`,
    `shapes=("small",)`; without a shape the result is for `full`.

    To be called from any number of threads and processes at once: all calls of a user with like settings share judges,
    which a server keeps ready until nobody has called for a minute (see `inlinebench.serve`), and the cache. Builds run
    side by side; evaluations on one GPU take turns.

    Raises UsageError for what can't be evaluated, NoDevice if the device can't be used, ServerDied if the server ends
    in the middle.
    """
    from inlinebench.serve.client import ask
    from inlinebench.serve.messages import Request

    source = _source(solution)
    options = Options(names=(_name(problem),), solution_file=Path(solution).absolute() if source is None else _ANY,
                      quiet=True, **{"shapes": (catalog.FULL,), **settings})
    return ask(Request(_absolute(options), source))


_ANY = Path("solution.py")
"""Stands for the file that the server makes of a text."""


def _source(solution: str | Path) -> str | None:
    """The text, if it is one: an answer may be a single line, or nothing at all."""
    if isinstance(solution, Path) or ("\n" not in solution and (solution.endswith(".py") or isfile(solution))):
        return None
    return solution


def _name(problem: str | Path) -> str:
    path = Path(problem)
    return str(path.absolute()) if path.suffix == ".py" and path.is_file() else str(problem)


def _absolute(options: Options) -> Options:
    """For a server that runs in another folder."""
    return replace(options, problems=options.problems.absolute(), solutions=options.solutions.absolute(),
                   cache=options.cache.expanduser().absolute())
