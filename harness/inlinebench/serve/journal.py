"""The journal of a service: accepted evaluations and their answers, in an SQLite file that outlives the service."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import Any

KEPT_S = 7 * 24 * 3600.0
"""How long an evaluation is kept after it was accepted, if it has an answer."""
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
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(_TABLE)
        self._connection.execute("DELETE FROM evaluations WHERE state = ? AND accepted < ?",
                                 (EvaluationState.DONE.value, time.time() - KEPT_S))

    def accept(self, owner: str, bodies: Sequence[Any]) -> list[str]:
        """Writes evaluations down, all or none, and returns their names."""
        names = [secrets.token_urlsafe(12) for _ in bodies]
        rows = [(name, owner, json.dumps(body), EvaluationState.QUEUED.value, time.time())
                for name, body in zip(names, bodies, strict=True)]
        with self._lock:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT INTO evaluations (id, owner, body, state, accepted) VALUES (?, ?, ?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        return names

    def begin(self, name: str) -> AcceptedEvaluation:
        """Notes that an evaluation begins, and returns it."""
        self._write("UPDATE evaluations SET state = ?, attempts = attempts + 1 WHERE id = ?",
                    EvaluationState.RUNNING.value, name)
        return self._entries("WHERE id = ?", name)[0]

    def finish(self, name: str, answer: str) -> None:
        """Writes an answer down."""
        self._write("UPDATE evaluations SET state = ?, answer = ? WHERE id = ?",
                    EvaluationState.DONE.value, answer, name)

    def find(self, name: str, owner: str) -> AcceptedEvaluation | None:
        """Returns an evaluation of this owner."""
        found = self._entries("WHERE id = ? AND owner = ?", name, owner)
        return found[0] if found else None

    def unfinished(self) -> list[str]:
        """Returns the evaluations without an answer, in the order of their arrival."""
        return [entry.id for entry in self._entries("WHERE state != ? ORDER BY number", EvaluationState.DONE.value)]

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def _write(self, statement: str, *values: Any) -> None:
        with self._lock:
            self._connection.execute(statement, values)

    def _entries(self, condition: str, *values: Any) -> list[AcceptedEvaluation]:
        with self._lock:
            rows = self._connection.execute(
                f"SELECT id, owner, body, state, attempts, answer FROM evaluations {condition}", values).fetchall()
        return [AcceptedEvaluation(name, owner, json.loads(body), EvaluationState(state), attempts, answer)
                for name, owner, body, state, attempts, answer in rows]
