"""`inlinebench serve`: evaluates for other processes until it is ended."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import signal
import socket
import sys
from argparse import Namespace
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.options.kinds import COUNT, FILE
from inlinebench.serve.place import PRIVATE, SOCKET, folder, short

if TYPE_CHECKING:
    from inlinebench.serve.app import App

PROGRAM = "inlinebench serve"
TEXT = """\
Evaluates for other processes, with judges that stay ready, until Ctrl-C or SIGTERM. inlinebench.evaluate uses it while
it runs. Accepted evaluations are written to a journal, and continue after a restart."""
EXAMPLES = """\
serve                                       for your own processes, by a socket
serve --port 8000 --token-file tokens       by HTTP, for whoever has a token (a line NAME TOKEN for each)"""
THREADS = 2 * (os.cpu_count() or 1) + 4
MOST_WAITING = 10_000
BACKLOG = 128
GRACE_S = 1


def main(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status, 0. Raises UsageError."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError("this command needs the extra `serve`: pip install 'inlinebench[serve]'") from error
    given = parser().parse_args(arguments)
    tokens = None if given.token_file is None else _tokens(given.token_file)
    if (given.port is None) != (tokens is None):
        raise UsageError("--port and --token-file need each other: whoever can reach a port could use it otherwise")
    if given.host is not None and given.port is None:
        raise UsageError("--host works only with --port")
    with (folder() / f"{SOCKET}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another service of yours runs at {folder() / SOCKET}; end it first") from None
        own = _own_socket()
        try:
            _serve(given, own, tokens)
        finally:
            (folder() / SOCKET).unlink(missing_ok=True)
    return 0


def parser() -> Parser:
    """Returns the parser of the command's arguments."""
    found = Parser(PROGRAM, TEXT, examples=EXAMPLES)
    found.add_argument("--port", type=int, metavar="N", help="serve HTTP at this port as well")
    found.add_argument("--host", metavar="ADDRESS", help="with --port: listen at this address (default: 127.0.0.1)")
    found.add_argument("--token-file", type=FILE.parse, metavar="FILE", help="with --port: lines NAME TOKEN")
    found.add_argument("--journal", type=FILE.parse, metavar="FILE",
                       help="file of accepted evaluations and their answers (default: beside the socket)")
    found.add_argument("--threads", type=COUNT.parse, default=THREADS, metavar="N",
                       help=f"evaluations at a time, most of which build or wait for a GPU (default: {THREADS})")
    found.add_argument("--max-waiting", type=COUNT.parse, default=MOST_WAITING, metavar="N",
                       help=f"evaluations that may wait; more are refused (default: {MOST_WAITING})")
    return found


def _tokens(path: Path) -> Mapping[str, str]:
    """Returns the owner of each token. Raises UsageError."""
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {path}: {error}") from error
    if not lines or any(len(line) != 2 for line in lines) or len({token for _, token in lines}) < len(lines):
        raise UsageError(f"--token-file {path}: write a line NAME TOKEN for each caller, each with a token of its own")
    return {token: f"token {hashlib.sha256(name.encode()).hexdigest()[:16]}" for name, token in lines}


def _own_socket() -> socket.socket:
    """Returns the user's socket, ready to accept."""
    path = folder() / SOCKET
    path.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX)
    with short(path) as address:
        found.bind(address)
    path.chmod(PRIVATE)
    found.listen(BACKLOG)
    return found


def _serve(given: Namespace, own: socket.socket, tokens: Mapping[str, str] | None) -> None:
    from inlinebench.serve.app import App
    from inlinebench.serve.evaluator import Evaluator
    from inlinebench.serve.journal import Journal
    from inlinebench.serve.work import WorkQueue

    with Evaluator() as evaluator:
        journal = Journal(given.journal or folder() / "service.sqlite")
        work = WorkQueue(journal, evaluator.answer, threads=given.threads, most_waiting=given.max_waiting)
        served = [(App(work, None), own)]
        where = str(folder() / SOCKET)
        if given.port is not None:
            host = given.host or "127.0.0.1"
            served.append((App(work, tokens), _tcp_socket(host, given.port)))
            where += f" and http://{host}:{given.port}"
        print(f"serving at {where}", file=sys.stderr, flush=True)
        asyncio.run(_until_signal(served))


def _tcp_socket(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--port {port}: {error}; choose another one") from error


async def _until_signal(served: Sequence[tuple[App, socket.socket]]) -> None:
    """Serves each application at its socket until SIGINT or SIGTERM."""
    from uvicorn import Config, Server

    class Quiet(Server):
        """Leaves signals to this module: several servers would each take them, and raise them again in the end."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    servers = [(Quiet(Config(app.starlette(), log_level="warning", timeout_graceful_shutdown=GRACE_S)), at)
               for app, at in served]

    def end() -> None:
        for server, _ in servers:
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    await asyncio.gather(*(server.serve([at]) for server, at in servers))
