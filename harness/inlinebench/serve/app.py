"""The HTTP interface of a service."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from inlinebench.errors import UsageError
from inlinebench.serve.journal import AcceptedEvaluation, EvaluationState
from inlinebench.serve.openapi import openapi
from inlinebench.serve.place import version
from inlinebench.serve.work import USER, QueueFull, WorkQueue

MOST_BYTES = 16 << 20
"""The largest body of a request."""
MOST_WAIT_S = 300.0
RETRY_S = 5


class App:
    """The routes of a service.

    Args:
        work: what evaluates.
        tokens: the owner of each token. None: whoever can connect is the user.
    """

    def __init__(self, work: WorkQueue, tokens: Mapping[str, str] | None) -> None:
        self._work, self._tokens, self._version = work, tokens, version()
        self._ends = asyncio.Event()

    def end(self) -> None:
        """Answers requests that wait with what is known now, so that the service can end."""
        self._ends.set()

    def starlette(self) -> Starlette:
        """Returns the application."""
        return Starlette(
            routes=[
                Route("/evaluations", self._submit, methods=["POST"]),
                Route("/evaluations/{name}", self._show),
                Route("/evaluations/{name}/events", self._events),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
                Route("/openapi.json", self._openapi),
            ],
            exception_handlers={HTTPException: _failed, ClientDisconnect: _left},
        )

    async def _submit(self, asked: Request) -> Response:
        owner = self._owner(asked)
        body = await _json(asked)
        bodies = body if isinstance(body, list) else [body]
        try:
            names = await asyncio.to_thread(self._work.accept, owner, bodies)
        except UsageError as error:
            raise HTTPException(422, str(error)) from None
        except QueueFull as full:
            raise HTTPException(429, str(full), {"Retry-After": str(RETRY_S)}) from None
        queued = [{"id": name, "state": EvaluationState.QUEUED.value} for name in names]
        return JSONResponse(queued if isinstance(body, list) else queued[0], 202)

    async def _show(self, asked: Request) -> Response:
        owner, name = self._owner(asked), asked.path_params["name"]
        await self._until_done(name, _seconds(asked.query_params.get("wait", "0")))
        return JSONResponse(_public(await self._entry(owner, name)))

    async def _events(self, asked: Request) -> Response:
        """Server-sent events: the evaluation whenever its state has changed, until it is done."""
        owner, name = self._owner(asked), asked.path_params["name"]
        first = await self._entry(owner, name)

        async def events() -> AsyncIterator[str]:
            entry, told = first, None
            while True:
                if entry.state is not told:
                    yield f"data: {json.dumps(_public(entry))}\n\n"
                if entry.state is EvaluationState.DONE or self._ends.is_set():
                    return
                told = entry.state
                await self._until_done(name, 1.0)
                entry = await self._entry(owner, name)

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _health(self, asked: Request) -> Response:
        return JSONResponse({"version": self._version, "waiting": self._work.waiting, "running": self._work.running})

    async def _metrics(self, asked: Request) -> Response:
        self._owner(asked)
        answered = dict(self._work.answered)
        lines = ["# TYPE inlinebench_waiting gauge", f"inlinebench_waiting {self._work.waiting}",
                 "# TYPE inlinebench_running gauge", f"inlinebench_running {self._work.running}",
                 "# TYPE inlinebench_answered_total counter",
                 *(f'inlinebench_answered_total{{verdict="{name}"}} {count}' for name, count in answered.items()),
                 "# TYPE inlinebench_reused_total counter", f"inlinebench_reused_total {self._work.reused}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def _openapi(self, asked: Request) -> Response:
        return JSONResponse(openapi())

    async def _entry(self, owner: str, name: str) -> AcceptedEvaluation:
        entry = await asyncio.to_thread(self._work.find, name, owner)
        if entry is None:
            raise HTTPException(404, "no such evaluation")
        return entry

    async def _until_done(self, name: str, seconds: float) -> None:
        ends = asyncio.create_task(self._ends.wait())
        either: list[asyncio.Future[Any]] = [asyncio.wrap_future(self._work.done(name)), ends]
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        ends.cancel()

    def _owner(self, asked: Request) -> str:
        """Returns who asks. Answers with 401 without a token of theirs."""
        if self._tokens is None:
            return USER
        given = asked.headers.get("authorization", "").removeprefix("Bearer ").encode()
        for token, owner in self._tokens.items():
            if hmac.compare_digest(token.encode(), given):
                return owner
        raise HTTPException(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


async def _json(asked: Request) -> Any:
    """Returns the body of a request. Answers with 413 or 400 if it is too large or no JSON."""
    body, size = bytearray(), 0
    async for part in asked.stream():  # to its end, since a connection that is closed before loses the answer
        size += len(part)
        if size <= MOST_BYTES:
            body += part
    if size > MOST_BYTES:
        raise HTTPException(413, f"a request has at most {MOST_BYTES >> 20} MiB")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is no JSON") from None


async def _failed(asked: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail}, error.status_code, error.headers)


async def _left(asked: Request, error: Exception) -> Response:
    """Ends a request whose client has closed the connection before the body's end. Nobody reads the answer."""
    return Response(status_code=400)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_WAIT_S:
        raise HTTPException(400, f"wait is a number of seconds from 0 to {MOST_WAIT_S:.0f}")
    return seconds


def _public(entry: AcceptedEvaluation) -> dict[str, Any]:
    """Returns what a caller is told of an evaluation."""
    answer: dict[str, Any] = {} if entry.answer is None else json.loads(entry.answer)
    return {"id": entry.id, "state": entry.state.value, **answer}
