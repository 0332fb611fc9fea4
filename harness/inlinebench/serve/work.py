"""The work of a service: accepted evaluations wait in a journal until one of a few threads evaluates them."""

from __future__ import annotations

import json
import queue
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.results.result_json import to_json
from inlinebench.serve.journal import AcceptedEvaluation, Journal
from inlinebench.serve.request import Request, from_json
from inlinebench.serve.reuse import Answered

USER = "user"
"""The owner of what comes over the user's own socket."""
MOST_ATTEMPTS = 3
"""An evaluation during which the service ended so often is answered with an error instead of being tried again."""
ERRORS = {each.__name__: each for each in (UsageError, NoDevice, NoSandbox)}
"""The errors that a caller gets as they are raised."""


class QueueFull(Exception):
    """As many evaluations wait as the service accepts."""


class WorkQueue:
    """Accepts evaluations, and evaluates them in the order of their arrival.

    Args:
        journal: where they are written down. Those in it without an answer are begun at once.
        evaluate: what evaluates a request of a caller. It is called from several threads.
        threads: how many requests are evaluated at the same time, most of which build or wait for their turn.
        most_waiting: how many may wait.
    """

    def __init__(
        self, journal: Journal, evaluate: Callable[[Request, str], Answered], *, threads: int, most_waiting: int
    ) -> None:
        self._journal, self._evaluate, self._most_waiting = journal, evaluate, most_waiting
        self._names: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._done: dict[str, Future[None]] = {}
        self._lock = Lock()
        self.answered: Counter[str] = Counter()
        """How many evaluations were answered, by verdict, or by the name of the error."""
        self.reused = 0
        """How many of them got the result of an equal one."""
        self.running = 0
        """How many are evaluated now."""
        for name in journal.unfinished():
            self._enqueue(name)
        for _ in range(threads):
            Thread(target=self._run, daemon=True).start()

    @property
    def waiting(self) -> int:
        """How many evaluations wait to be begun."""
        return self._names.qsize()

    def accept(self, owner: str, bodies: Sequence[Any]) -> list[str]:
        """Writes requests down, all or none, and returns the names of the evaluations.

        Raises UsageError if one is malformed, and QueueFull.
        """
        for body in bodies:
            from_json(body, remote=owner != USER)
        with self._lock:
            if self.waiting + len(bodies) > self._most_waiting:
                raise QueueFull
            names = self._journal.accept(owner, bodies)
            for name in names:
                self._enqueue(name)
        return names

    def find(self, name: str, owner: str) -> AcceptedEvaluation | None:
        """Returns an evaluation of this owner."""
        return self._journal.find(name, owner)

    def done(self, name: str) -> Future[None]:
        """Returns a future that is done when the evaluation has an answer."""
        with self._lock:
            found = self._done.get(name)
        if found is None:
            found = Future()
            found.set_result(None)
        return found

    def _enqueue(self, name: str) -> None:
        self._done[name] = Future()
        self._names.put(name)

    def _run(self) -> None:
        while True:
            name = self._names.get()
            entry = self._journal.begin(name)
            with self._lock:
                self.running += 1
            answer = self._answer(entry)
            self._journal.finish(name, json.dumps(answer))
            with self._lock:
                self.running -= 1
                self.answered[answer.get("error") or answer["result"]["verdict"]] += 1
                self.reused += bool(answer.get("reused"))
                done = self._done.pop(name)
            done.set_result(None)

    def _answer(self, entry: AcceptedEvaluation) -> Mapping[str, Any]:
        """Returns `result` and whether it is `reused`, or `error` with its `message`."""
        if entry.attempts > MOST_ATTEMPTS:
            return {"error": "ServerDied", "message": f"the service ended {MOST_ATTEMPTS} times during this evaluation"}
        try:
            answer = self._evaluate(from_json(entry.body, remote=entry.owner != USER), entry.owner)
            return {"result": json.loads(to_json(answer.result)), "reused": answer.reused}
        except tuple(ERRORS.values()) as error:
            return {"error": type(error).__name__, "message": str(error)}
        except Exception:  # noqa: BLE001 - a bug in the harness must not end the service; the caller reports it
            return {"error": "Traceback", "message": traceback.format_exc()}
