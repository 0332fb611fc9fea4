"""The work of a service: accepted evaluations wait in a journal until one of a few threads evaluates them."""

from __future__ import annotations

import json
import secrets
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Any

from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.results.result_json import to_json
from inlinebench.serve.journal import AcceptedEvaluation, Journal
from inlinebench.serve.request import Request, from_json
from inlinebench.serve.reuse import Answered
from inlinebench.serve.turns import Turns

USER = "user"
"""The owner of what comes over the user's own socket."""
MOST_ATTEMPTS = 3
"""An evaluation during which the service was killed so often may be why. It is evaluated once more, alone and last, and
answered with an error if the service is killed then, too."""
ERRORS = {each.__name__: each for each in (UsageError, NoDevice, NoSandbox)}
"""The errors that a caller gets as they are raised."""


class QueueFull(Exception):
    """As many evaluations of a caller wait as the service accepts. The text says how many."""


class WorkQueue:
    """Accepts evaluations, and evaluates them. Callers take turns, and each one's are in the order of their arrival.

    Args:
        journal: where they are written down. Those in it without an answer are begun at once.
        evaluate: what evaluates a request of a caller. It is called from several threads.
        threads: how many requests are evaluated at the same time, most of which build or wait for their turn.
        most_waiting: how many of each caller may wait.
        limits: the same for callers with a limit of their own.
    """

    def __init__(
        self, journal: Journal, evaluate: Callable[[Request, str], Answered], *, threads: int, most_waiting: int,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self._journal, self._evaluate = journal, evaluate
        self._most_waiting, self._limits = most_waiting, limits or {}
        self._names: Turns[tuple[str, bool]] = Turns()
        self._done: dict[str, Future[None]] = {}
        self._lock = Condition()
        self._one_alone = False
        self.answered: Counter[str] = Counter()
        """How many evaluations were answered, by verdict, or by the name of the error."""
        self.reused = 0
        """How many of them got the result of an equal one."""
        self.running = 0
        """How many are evaluated now."""
        for entry in sorted(journal.unfinished(), key=_may_end_the_service):
            self._enqueue(entry.id, entry.owner, alone=_may_end_the_service(entry))
        for _ in range(threads):
            Thread(target=self._run, daemon=True).start()

    @property
    def waiting(self) -> int:
        """How many evaluations wait to be begun."""
        return self._names.count()

    def accept(self, owner: str, bodies: Sequence[Any]) -> list[str]:
        """Writes requests down, all or none, and returns the names of the evaluations.

        Raises UsageError if one is malformed, and QueueFull.
        """
        for body in bodies:
            from_json(body, remote=owner != USER)
        names = [str(body.get("id") or secrets.token_urlsafe(12)) for body in bodies]
        if len(set(names)) < len(names):
            raise UsageError("two evaluations have the same id")
        limit = self._limits.get(owner, self._most_waiting)
        if len(bodies) > limit:
            raise UsageError(f"a request has at most {limit} evaluations, because no more of yours may wait")
        with self._lock:
            if (waiting := self._names.count(owner)) + len(bodies) > limit:
                raise QueueFull(f"{waiting} of your evaluations wait, of at most {limit}; try again later")
            for name in self._journal.accept(owner, dict(zip(names, bodies, strict=True))):
                self._enqueue(name, owner)
        return names

    def close(self) -> None:
        """Leaves what has no answer to the next service. Answers from now on, which may be due to the end, are lost."""
        self._journal.give_back()

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

    def _enqueue(self, name: str, owner: str, *, alone: bool = False) -> None:
        self._done[name] = Future()
        self._names.put(owner, (name, alone))

    def _run(self) -> None:
        while True:
            name, alone = self._names.get()
            with self._running(alone=alone):
                entry = self._journal.begin(name)
                if entry is None:
                    return
                answer = self._answer(entry)
                if not self._journal.finish(name, json.dumps(answer)):
                    return
            with self._lock:
                self.answered[answer.get("error") or answer["result"]["verdict"]] += 1
                self.reused += bool(answer.get("reused"))
                done = self._done.pop(name)
            done.set_result(None)

    @contextmanager
    def _running(self, *, alone: bool) -> Iterator[None]:
        """Waits until no evaluation runs that has to be alone, and for one of those until no other runs."""
        with self._lock:
            self._lock.wait_for(lambda: not self._one_alone)
            self._one_alone = alone
            self._lock.wait_for(lambda: not (alone and self.running))
            self.running += 1
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1
                self._one_alone &= not alone
                self._lock.notify_all()

    def _answer(self, entry: AcceptedEvaluation) -> Mapping[str, Any]:
        """Returns `result` and whether it is `reused`, or `error` with its `message`."""
        if entry.attempts > MOST_ATTEMPTS + 1:
            return {"error": "ServerDied", "message": f"the service was killed {MOST_ATTEMPTS + 1} times during this "
                                                      "evaluation, and nothing else ran the last time"}
        try:
            answer = self._evaluate(from_json(entry.body, remote=entry.owner != USER), entry.owner)
            return {"result": json.loads(to_json(answer.result)), "reused": answer.reused}
        except tuple(ERRORS.values()) as error:
            return {"error": type(error).__name__, "message": str(error)}
        except Exception:  # noqa: BLE001 - a bug in the harness must not end the service; the caller reports it
            return {"error": "Traceback", "message": traceback.format_exc()}


def _may_end_the_service(entry: AcceptedEvaluation) -> bool:
    return entry.attempts >= MOST_ATTEMPTS
