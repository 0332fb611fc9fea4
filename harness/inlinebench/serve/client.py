"""The client: connects to the server, starts it if necessary, sends a request and waits for the reply."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection

from inlinebench.errors import ServerDied
from inlinebench.foreign import quotation
from inlinebench.results.result import Result
from inlinebench.serve.endpoint import Endpoint, endpoint
from inlinebench.serve.messages import Reply, Request
from inlinebench.wire.own_python import PACKAGE, own_python

START_S = 60.0
STEP_S = 0.05
ATTEMPTS = 3
LOG_TAIL = 2000


def ask(request: Request) -> Result:
    """Evaluates a request and returns the result.

    Raises UsageError, NoDevice and NoSandbox as the evaluation does, and ServerDied if the server ended or failed.
    """
    where = endpoint()
    for _ in range(ATTEMPTS):
        reply = _ask_once(where, request)
        if reply is not None:
            break
    else:
        raise ServerDied(f"no server accepted the evaluation; {_last_words(where)}")
    if reply.error is not None:
        raise reply.error
    if reply.result is None:
        raise ServerDied(f"the harness failed; please report this:\n{quotation(reply.traceback or '')}")
    return reply.result


def _ask_once(where: Endpoint, request: Request) -> Reply | None:
    """Returns the reply, or None if the server ended before it accepted the request. An idle server ends by itself."""
    with _connect(where) as connection:
        try:
            connection.send(request)
            connection.recv()
        except (EOFError, ConnectionError):
            return None
        try:
            reply: Reply = connection.recv()
        except (EOFError, ConnectionError) as error:
            raise ServerDied(f"the server ended during the evaluation; {_last_words(where)}") from error
    return reply


def _connect(where: Endpoint) -> Connection:
    try:
        return _open(where)
    except (OSError, EOFError, AuthenticationError):
        with where.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # only one of the waiting clients starts a server
            try:
                return _open(where)
            except (OSError, EOFError, AuthenticationError):
                return _start(where)


def _open(where: Endpoint) -> Connection:
    with where.address() as address:
        return Client(address, family="AF_UNIX", authkey=where.key.read_bytes())


def _start(where: Endpoint) -> Connection:
    with where.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.serve.server", str(where.folder), where.name], cwd=PACKAGE,
            env={**os.environ, **own_python()}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return _open(where)
        except (OSError, EOFError, AuthenticationError):
            time.sleep(STEP_S)
    raise ServerDied(f"the server did not start; {_last_words(where)}")


def _last_words(where: Endpoint) -> str:
    try:
        said = where.log.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        said = ""
    return f"{where.log} ends with:\n{quotation(said[-LOG_TAIL:])}" if said else "its log is empty"
