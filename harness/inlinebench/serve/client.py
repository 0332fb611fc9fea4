"""The client of a service."""

from __future__ import annotations

import asyncio
import http.client
import json
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inlinebench.errors import ServerDied, UsageError
from inlinebench.foreign import quotation
from inlinebench.results.result import Result
from inlinebench.results.result_json import from_json
from inlinebench.serve.place import SOCKET, folder, short, version
from inlinebench.serve.request import to_json
from inlinebench.serve.work import ERRORS

WAIT_S = 60
"""How long one request waits for an answer before it asks again."""
RETRY_S = 1.0
AGAIN_S = 0.2
"""How long to wait before a service that does not answer is asked again."""


class Client:
    """Evaluates by a service.

    Args:
        address: the path of the service's socket, or its URL, such as `http://host:8000`. By default the socket of the
            user's own service.
        token: the caller's token, for a service that is reached by a URL.
        reuse: whether a solution that equals an earlier one of this caller gets its result, without an evaluation.
        patience: how long a request is repeated while the service does not answer, in seconds, so that a restart of the
            service is only a delay.
    """

    def __init__(
        self, address: str | Path | None = None, token: str = "", *, reuse: bool = True, patience: float = 60.0
    ) -> None:
        self._reuse, self._patience = reuse, patience
        self._url = urlsplit(address) if isinstance(address, str) and "://" in address else None
        if self._url is not None and (self._url.scheme != "http" or self._url.hostname is None):
            raise UsageError(f"{address}: write http://HOST:PORT")
        self._socket = folder() / SOCKET if address is None else Path(str(address)).absolute()
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def evaluate(self, problem: str | Path, solution: str | Path, **settings: Any) -> Result:
        """Evaluates a solution and returns the result. Arguments and errors are those of `inlinebench.evaluate`."""
        (name,) = self.submit([to_json(problem, solution, settings, reuse=self._reuse)])
        return self.result(name)

    async def evaluate_async(self, problem: str | Path, solution: str | Path, **settings: Any) -> Result:
        """As `evaluate`, without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.evaluate(problem, solution, **settings))

    def submit(self, bodies: Sequence[dict[str, Any]]) -> list[str]:
        """Submits evaluations as the service's HTTP interface describes them, and returns their names.

        Waits while the queue of the service is full. Raises UsageError if one is malformed.
        """
        named = [{"id": secrets.token_urlsafe(12), **body} for body in bodies]  # so that `_ask` may repeat the request
        return [str(each["id"]) for each in self._ask("POST", "/evaluations", named)]

    def result(self, name: str) -> Result:
        """Waits for the result of a submitted evaluation. Raises what the evaluation raises."""
        while True:
            answer = self._ask("GET", f"/evaluations/{name}?wait={WAIT_S}")
            if answer["state"] == "done":
                break
        if "result" in answer:
            return from_json(json.dumps(answer["result"]))
        if answer["error"] in ERRORS:
            raise ERRORS[answer["error"]](answer["message"])
        if answer["error"] == ServerDied.__name__:
            raise ServerDied(answer["message"])
        raise ServerDied(f"the harness failed; please report this:\n{quotation(answer['message'])}")

    def health(self) -> dict[str, Any]:
        """Returns the version of the service and how much it has to do."""
        found: dict[str, Any] = self._ask("GET", "/health")
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body)
        while True:
            status, retry_s, text = self._patiently(method, path, sent)
            if status != http.client.TOO_MANY_REQUESTS:
                break
            time.sleep(retry_s)
        answer = json.loads(text)
        if status >= http.client.BAD_REQUEST:
            raise UsageError(str(answer["message"]))
        return answer

    def _patiently(self, method: str, path: str, body: str | None) -> tuple[int, float, str]:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._exchange(method, path, body)
            except ServerDied:
                if time.monotonic() + AGAIN_S > deadline:
                    raise
            time.sleep(AGAIN_S)

    def _exchange(self, method: str, path: str, body: str | None) -> tuple[int, float, str]:
        try:
            connection = self._connect()
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
                retry_s = float(response.headers.get("Retry-After") or RETRY_S)
                text = response.read().decode()
                if response.status >= http.client.INTERNAL_SERVER_ERROR:  # also of a proxy before the service
                    raise http.client.HTTPException(f"status {response.status}")
                return response.status, retry_s, text
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise ServerDied(f"the service at {self._url.geturl() if self._url else self._socket} does not answer: "
                             f"{error}; look at its messages, or start it with `inlinebench serve`") from error

    def _connect(self) -> http.client.HTTPConnection:
        if self._url is not None:
            return http.client.HTTPConnection(str(self._url.hostname), self._url.port, timeout=2 * WAIT_S)
        connection = http.client.HTTPConnection("localhost", timeout=2 * WAIT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        with short(self._socket) as address:
            connection.sock.connect(address)
        return connection


def running() -> Client | None:
    """Returns a client of the user's own service, or None if there is none.

    Raises UsageError if the service runs other files of the harness than this process.
    """
    if not (folder() / SOCKET).exists():
        return None
    client = Client(reuse=False, patience=0)  # `evaluate` measures again, with a service and without
    try:
        theirs = client.health()["version"]
    except ServerDied:
        return None  # what a killed service left behind
    if theirs != version():
        raise UsageError(f"the service at {folder() / SOCKET} was started with other files of inlinebench ({theirs}); "
                         "restart it")
    return client
