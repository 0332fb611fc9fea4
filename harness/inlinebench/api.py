"""The Python API: `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inlinebench.results.result import Result


def evaluate(problem: str | Path, solution: str | Path, **settings: Any) -> Result:
    """Evaluates one solution against one problem and returns the result.

    `problem` is a name or the path of a problem file. `solution` is the path of a solution file or its source text.
    `settings` are fields of `inlinebench.options.Options`, for example `device="cuda:0"`, `check=True` or
    `shapes=("small",)`. The default shape is `full`. Times and speedups measured on the CPU do not predict a GPU's.

    If the user's service runs (`inlinebench serve`), it evaluates. Otherwise this process does, and each call starts a
    judge, which takes seconds; `Evaluator` keeps it for further calls. The function may be called from any number of
    threads and processes at the same time: evaluations on the same GPU run one after the other.

    Raises TypeError for other settings, UsageError if the arguments cannot be evaluated, NoDevice if the device cannot
    be used, NoSandbox if a required sandbox is not available, and ServerDied if the service ends before it replies.
    """
    from inlinebench.serve.client import running
    from inlinebench.serve.evaluator import Evaluator

    client = running()
    if client is not None:
        return client.evaluate(problem, solution, **settings)
    with Evaluator() as evaluator:
        return evaluator.evaluate(problem, solution, **settings)
