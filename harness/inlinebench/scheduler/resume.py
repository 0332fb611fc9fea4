"""The results of an earlier run, whose evaluations `--resume` skips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate
from inlinebench.results import jsonl
from inlinebench.results.result import Result, Verdict


class EarlierResults:
    """The results of a file, by key. The last result with a key counts.

    Internal errors are left out, so these evaluations run again: they say nothing about the solution.
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._all = [result for result in results if result.verdict is not Verdict.INTERNAL_ERROR]
        self._by_key = {result.key: result for result in self._all if result.key is not None}

    @classmethod
    def read(cls, path: Path) -> EarlierResults:
        """Reads a file, which may be missing. Raises UsageError if it contains anything but results."""
        try:
            return cls(jsonl.read(path)) if path.exists() else cls()
        except (ValueError, OSError) as error:
            raise UsageError(f"--resume: {error}; set --out to a file that an earlier run wrote") from error

    def recall(self, job: Evaluate, keys: Sequence[str | None]) -> Result | None:
        """Returns the result with one of these keys, with the job's names; None if there is no such result."""
        found = next((self._by_key[key] for key in keys if key in self._by_key), None)
        return None if found is None else with_names_of(job, found)

    def __contains__(self, result: Result) -> bool:
        return result in self._all


def with_names_of(job: Evaluate, result: Result) -> Result:
    """Returns the result of an equal job as that of this job, whose names may differ."""
    return replace(result, problem=job.problem_name, solution=job.solution_name, shape=job.shape_name,
                   weight=job.weight)
