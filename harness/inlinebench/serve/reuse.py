"""Answers equal evaluations once: a second one waits for the first, or gets the result that the first one had."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from inlinebench.messages import Evaluate
from inlinebench.results.result import Result
from inlinebench.results.result_json import from_json, to_json
from inlinebench.scheduler.resume import with_names_of

MOST_RESULTS = 1_000_000
"""Beyond this number, the results that were kept first are removed."""


@dataclass(frozen=True)
class Answered:
    """The result of an evaluation, and where it is from."""

    result: Result
    """The result."""
    reused: bool
    """Whether it is that of an equal evaluation before."""


Once = Callable[[Evaluate, Sequence[str | None], Callable[[], Result]], Answered]
"""Answers a job with these keys, by the function that evaluates it or without."""


def fresh(job: Evaluate, keys: Sequence[str | None], evaluate: Callable[[], Result]) -> Answered:
    """Evaluates, whatever was evaluated before."""
    return Answered(evaluate(), reused=False)


class Reuse:
    """The results of evaluations by caller and key (`inlinebench.scheduler.identity`).

    They are in a temporary SQLite file, so that a million of them need no memory, and forgotten when the process ends:
    a restart is how a change of the machine that no key covers, such as a repaired compiler, takes effect. Results are
    kept if their verdict `repeats`. A caller never gets those of another one, nor learns that there are any. All
    methods may be called from any thread.
    """

    def __init__(self, most: int = MOST_RESULTS) -> None:
        self._most, self._lock = most, Lock()
        self._running: dict[tuple[str, str], Future[None]] = {}
        self._connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._connection.execute("CREATE TABLE results (number INTEGER PRIMARY KEY, caller TEXT, key TEXT, text BLOB, "
                                 "UNIQUE (caller, key))")

    def answer(
        self, caller: str, job: Evaluate, keys: Sequence[str | None], evaluate: Callable[[], Result]
    ) -> Answered:
        """Returns the result of an equal evaluation of this caller, or else evaluates.

        Waits while an equal one runs. If that one leaves no result to reuse, one of those that wait evaluates. `keys`
        are those of the job on each device that may evaluate it. Raises what `evaluate` raises.
        """
        known = [key for key in keys if key is not None]
        if not known:
            return fresh(job, keys, evaluate)
        name = caller, known[0]
        while True:
            with self._lock:
                found, running = self._find(caller, known), self._running.get(name)
                if found is None and running is None:
                    own = self._running[name] = Future[None]()
            if found is not None:
                return Answered(with_names_of(job, found), reused=True)
            if running is None:
                break
            running.result()
        try:
            answer = fresh(job, keys, evaluate)
            self._keep(caller, answer.result)
            return answer
        finally:
            with self._lock:
                del self._running[name]
            own.set_result(None)

    def close(self) -> None:
        """Forgets all results."""
        with self._lock:
            self._connection.close()

    def _find(self, caller: str, keys: Sequence[str]) -> Result | None:
        for key in keys:
            row = self._connection.execute("SELECT text FROM results WHERE caller = ? AND key = ?", (caller, key))
            for (text,) in row:
                return from_json(zlib.decompress(text).decode())
        return None

    def _keep(self, caller: str, result: Result) -> None:
        """Keeps a result under its own key: the files may have changed before they were evaluated."""
        if result.key is None or not result.verdict.repeats:
            return
        text = zlib.compress(to_json(result).encode())
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO results (caller, key, text) VALUES (?, ?, ?)",
                                     (caller, result.key, text))
            self._connection.execute("DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ?",
                                     (self._most,))
