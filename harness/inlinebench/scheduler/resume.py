"""What an earlier run found already, so that `--resume` doesn't do it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from inlinebench.messages import Evaluate
from inlinebench.records import jsonl
from inlinebench.records.errors import UsageError
from inlinebench.records.result import Result, Verdict


class EarlierResults:
    """The results of a file, by their keys; of several with one key the last.

    One that ended with a fault of the harness's counts as not there: it says nothing of the solution.
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._all = [result for result in results if result.verdict is not Verdict.INTERNAL_ERROR]
        self._by_key = {result.key: result for result in self._all if result.key is not None}

    @classmethod
    def read(cls, path: Path) -> EarlierResults:
        """Those of a file; none if it isn't there yet. Raises UsageError if it holds anything but results."""
        try:
            return cls(jsonl.read(path)) if path.exists() else cls()
        except (ValueError, OSError) as error:
            raise UsageError(f"--resume: {error}; --out names a file that an earlier run wrote") from error

    def recall(self, job: Evaluate, keys: Sequence[str | None]) -> Result | None:
        """The result of a job that has one of these keys, under the job's names."""
        found = next((self._by_key[key] for key in keys if key in self._by_key), None)
        if found is None:
            return None
        return replace(found, problem=job.problem_name, solution=job.solution_name, shape=job.shape_name)

    def __contains__(self, result: Result) -> bool:
        return result in self._all
