"""The server: `python -m inlinebench.serve.server FOLDER NAME`. It ends when it has been idle for a while."""

from __future__ import annotations

import os
import secrets
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from threading import Condition, Thread

from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.serve.endpoint import Endpoint
from inlinebench.serve.messages import Reply, Request, Taken
from inlinebench.serve.pool import Pool
from inlinebench.serve.source import as_file

IDLE_S = 60.0
"""Seconds that an idle server stays alive; INLINEBENCH_IDLE overrides them."""
BACKLOG = 128
KEY_BYTES = 32


class Server:
    """Listens at an endpoint and serves each connection in its own thread."""

    def __init__(self, endpoint: Endpoint, idle_s: float) -> None:
        self._endpoint, self._idle_s = endpoint, idle_s
        self._pool = Pool()
        self._changed = Condition()
        self._callers = 0
        self._last = time.monotonic()

    def run(self) -> None:
        """Serves until no request has arrived for `idle_s` seconds."""
        endpoint = self._endpoint
        key = secrets.token_bytes(KEY_BYTES)
        endpoint.socket.unlink(missing_ok=True)
        with open(os.open(endpoint.key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(key)
        with (endpoint.address() as address,
              Listener(address, family="AF_UNIX", backlog=BACKLOG, authkey=key) as listener):
            Thread(target=self._accept, args=(listener,), daemon=True).start()
            self._wait_until_idle()
        # The listener has removed its socket, so a new client starts another server.
        self._pool.close()

    def _wait_until_idle(self) -> None:
        with self._changed:
            while self._callers or time.monotonic() < self._last + self._idle_s:
                self._changed.wait(None if self._callers else self._last + self._idle_s - time.monotonic())

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue  # the client lacks the key, or has disconnected
            except OSError:
                return  # the listener is closed
            with self._changed:
                self._callers += 1
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            with connection:
                request: Request = connection.recv()
                connection.send(Taken())
                connection.send(self._answer(request))
        except (EOFError, ConnectionError):
            pass  # the client has disconnected
        finally:
            with self._changed:
                self._callers -= 1
                self._last = time.monotonic()
                self._changed.notify()

    def _answer(self, request: Request) -> Reply:
        try:
            with as_file(request.options, request.source) as options:
                return Reply(self._pool.evaluate(options))
        except (UsageError, NoDevice, NoSandbox) as error:
            return Reply(error=error)
        except Exception:  # noqa: BLE001 - a bug in the harness must not end the server; the client reports it
            return Reply(traceback=traceback.format_exc())


def main(arguments: Sequence[str]) -> int:
    """Runs the server. The arguments are the endpoint's folder and name."""
    server = Server(Endpoint(Path(arguments[0]), arguments[1]), float(os.environ.get("INLINEBENCH_IDLE") or IDLE_S))
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
