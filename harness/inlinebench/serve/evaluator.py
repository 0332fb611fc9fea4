"""Evaluates in this process, with judges that stay ready."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, cast

from inlinebench.options import Options
from inlinebench.results.result import Result
from inlinebench.serve.executors import Executors
from inlinebench.serve.request import Request, in_fields, of_response, request
from inlinebench.serve.reuse import Answered, Once, Reuse, fresh


class EvaluatesOnce(Protocol):
    """What evaluates for an `Evaluator`: the executors of this process, or others."""

    def evaluate(self, options: Options, once: Once) -> Answered:
        """Returns the result of the only evaluation that the options select, by `once`."""

    def close(self) -> None:
        """Ends all processes."""


class Evaluator:
    """Evaluates solutions in this process. A context manager; on exit all its processes are ended.

    Args:
        settings: settings of all evaluations, as those of `inlinebench.evaluate`. Evaluations with the same settings
            share judges, which keep a problem prepared.
        reuse: whether a solution that equals an earlier one gets its result, without an evaluation. Equal are those
            with the same files, problem and settings.
    """

    def __init__(self, *, reuse: bool = False, **settings: Any) -> None:
        self._settings, self._reuses = settings, reuse
        self._executors: EvaluatesOnce = Executors()
        self._reuse = Reuse()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executors.close()
        self._reuse.close()

    def evaluate(
        self, problem: str | Path, solution: str | Path | None = None, *, response: str | None = None, **settings: Any
    ) -> Result:
        """Evaluates a solution, or the one in a model's response, and returns the result.

        May be called from any number of threads. Raises TypeError, UsageError, NoDevice and NoSandbox as
        `inlinebench.evaluate` does.
        """
        given = {**self._settings, **settings}
        if response is None:
            asked = request(problem, cast("str | Path", solution), given)  # which refuses None
        elif solution is None:
            asked = of_response(problem, response, given)
        else:
            raise TypeError("evaluate(): give a solution or a response, not both")
        return self.answer(replace(asked, reuse=self._reuses)).result

    def answer(self, asked: Request, caller: str = "") -> Answered:
        """Returns the result of a request. Each caller's results are reused for that one only.

        Raises UsageError, NoDevice and NoSandbox.
        """
        once = partial(self._reuse.answer, caller) if asked.reuse else fresh
        with in_fields(), asked.as_file() as options:
            return self._executors.evaluate(options, once)
