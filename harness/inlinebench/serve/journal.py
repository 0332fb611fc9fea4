"""The journal of a service: accepted evaluations and their answers, in an SQLite file that outlives the service."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import Any

from inlinebench.errors import UsageError

KEPT_S = 7 * 24 * 3600.0
"""How long an evaluation is kept after it was accepted, if it has an answer."""
AGAIN_S = 2.0
"""How long to wait until a journal that could not be written is tried again, in seconds."""
_TABLE = """
CREATE TABLE IF NOT EXISTS evaluations (
  number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, accepted REAL NOT NULL, answer TEXT)
"""


class EvaluationState(Enum):
    """What has become of an evaluation."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True)
class AcceptedEvaluation:
    """An evaluation in the journal."""

    id: str
    """Its name, which cannot be guessed."""
    owner: str
    """Who asked for it."""
    body: Any
    """The request, as it came."""
    state: EvaluationState
    attempts: int
    """How often it was begun."""
    answer: str | None
    """The answer, as JSON. None unless it is done."""


class Journal:
    """Reads and writes a journal. All methods may be called from any thread. Opening it removes old answers."""

    def __init__(self, path: Path) -> None:
        self._lock = Lock()
        self._given_back = False
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(_TABLE)
        self._connection.execute("DELETE FROM evaluations WHERE state = ? AND accepted < ?",
                                 (EvaluationState.DONE.value, time.time() - KEPT_S))

    def accept(self, owner: str, bodies: Mapping[str, Any]) -> list[str]:
        """Writes evaluations down by their names, all or none. Returns the names of those that were not in it before.

        Raises UsageError if a name is that of another evaluation.
        """
        texts = {name: json.dumps(body) for name, body in bodies.items()}
        with self._lock, self._transaction() as connection:
            known = {name for name, text in texts.items() if self._is_known(name, owner, text)}
            new = [name for name in texts if name not in known]
            connection.executemany(
                "INSERT INTO evaluations (id, owner, body, state, accepted) VALUES (?, ?, ?, ?, ?)",
                [(name, owner, texts[name], EvaluationState.QUEUED.value, time.time()) for name in new])
        return new

    def begin(self, name: str) -> AcceptedEvaluation | None:
        """Notes that an evaluation begins, and returns it. Returns None after `give_back`."""
        begun = self._write("UPDATE evaluations SET state = ?, attempts = attempts + 1 WHERE id = ?",
                            EvaluationState.RUNNING.value, name)
        return self._entries("WHERE id = ?", name)[0] if begun else None

    def finish(self, name: str, answer: str) -> bool:
        """Writes an answer down. Returns False after `give_back`, when there is nothing to be answered."""
        return self._write("UPDATE evaluations SET state = ?, answer = ? WHERE id = ?",
                           EvaluationState.DONE.value, answer, name)

    def find(self, name: str, owner: str) -> AcceptedEvaluation | None:
        """Returns an evaluation of this owner."""
        found = self._entries("WHERE id = ? AND owner = ?", name, owner)
        return found[0] if found else None

    def unfinished(self) -> list[AcceptedEvaluation]:
        """Returns the evaluations without an answer, in the order of their arrival."""
        return self._entries("WHERE state != ? ORDER BY number", EvaluationState.DONE.value)

    def give_back(self) -> None:
        """Notes that what was begun was not, because the service ends by itself. Nothing is begun or answered later."""
        with self._lock:
            self._given_back = True
            self._connection.execute("UPDATE evaluations SET state = ?, attempts = attempts - 1 WHERE state = ?",
                                     (EvaluationState.QUEUED.value, EvaluationState.RUNNING.value))

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def _is_known(self, name: str, owner: str, text: str) -> bool:
        for row in self._connection.execute("SELECT owner, body FROM evaluations WHERE id = ?", (name,)):
            if row != (owner, text):
                raise UsageError(f"id {name} is that of another evaluation")
            return True
        return False

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _write(self, statement: str, *values: Any) -> bool:
        """Writes, as soon as there is room on the disk. Returns False after `give_back`."""
        while True:
            with self._lock:
                if self._given_back:
                    return False
                try:
                    self._connection.execute(statement, values)
                    return True
                except sqlite3.OperationalError as error:
                    print(f"the journal cannot be written, which is tried again: {error}", file=sys.stderr, flush=True)
            time.sleep(AGAIN_S)

    def _entries(self, condition: str, *values: Any) -> list[AcceptedEvaluation]:
        with self._lock:
            rows = self._connection.execute(
                f"SELECT id, owner, body, state, attempts, answer FROM evaluations {condition}", values).fetchall()
        return [AcceptedEvaluation(name, owner, json.loads(body), EvaluationState(state), attempts, answer)
                for name, owner, body, state, attempts, answer in rows]
