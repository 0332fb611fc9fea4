"""Evaluates in this process, with judges that stay ready."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from inlinebench.results.result import Result
from inlinebench.serve.pool import Pool
from inlinebench.serve.request import Request, in_fields, request


class Evaluator:
    """Evaluates solutions in this process. A context manager; on exit all its processes are ended.

    Args:
        settings: settings of all evaluations, as those of `inlinebench.evaluate`. Evaluations with the same settings
            share judges, which keep a problem prepared.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._pool = Pool()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def evaluate(self, problem: str | Path, solution: str | Path, **settings: Any) -> Result:
        """Evaluates a solution and returns the result. May be called from any number of threads.

        Raises TypeError, UsageError, NoDevice and NoSandbox as `inlinebench.evaluate` does.
        """
        return self.answer(request(problem, solution, {**self._settings, **settings}))

    def answer(self, asked: Request) -> Result:
        """Returns the result of a request. Raises UsageError, NoDevice and NoSandbox."""
        with in_fields(), asked.as_file() as options:
            return self._pool.evaluate(options)
