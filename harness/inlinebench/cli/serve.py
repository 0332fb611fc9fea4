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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.options import RAY
from inlinebench.options.kinds import COUNT, FILE
from inlinebench.serve.place import PRIVATE, SOCKET, folder, scratch, short

if TYPE_CHECKING:
    from inlinebench.serve.app import App
    from inlinebench.serve.evaluator import Evaluator

PROGRAM = "inlinebench serve"
TEXT = """\
Evaluates for other processes, with judges that stay ready, until Ctrl-C or SIGTERM. inlinebench.evaluate uses it while
it runs. Accepted evaluations are written to a journal, and continue after a restart."""
EXAMPLES = """\
                                      for your own processes, by a socket
--port 8000 --token-file tokens       by HTTP, for whoever has a token (a line NAME TOKEN [LIMIT] for each)
--backend ray --workers 8 --cpus 12   evaluates on 8 GPUs of a Ray cluster, with 12 cores for each"""
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
    callers = None if given.token_file is None else _callers(given.token_file)
    if (given.port is None) != (callers is None):
        raise UsageError("--port and --token-file need each other: whoever can reach a port could use it otherwise")
    if given.host is not None and given.port is None:
        raise UsageError("--host works only with --port")
    if given.backend != RAY and (given.workers, given.cpus, given.ray_address) != (1, 1, None):
        raise UsageError("--workers, --cpus and --ray-address work only with --backend ray")
    with (folder() / f"{SOCKET}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another service of yours runs at {folder() / SOCKET}; end it first") from None
        own = _own_socket()
        try:
            with scratch():
                _serve(given, own, callers or Callers({}, {}))
        finally:
            (folder() / SOCKET).unlink(missing_ok=True)
    return 0


def parser() -> Parser:
    """Returns the parser of the command's arguments."""
    found = Parser(PROGRAM, TEXT, examples=EXAMPLES)
    found.add_argument("--port", type=int, metavar="N", help="serve HTTP at this port as well")
    found.add_argument("--host", metavar="ADDRESS", help="with --port: listen at this address (default: 127.0.0.1)")
    found.add_argument("--token-file", type=FILE.parse, metavar="FILE",
                       help="with --port: lines NAME TOKEN, or NAME TOKEN LIMIT, where LIMIT replaces --max-waiting")
    found.add_argument("--journal", type=FILE.parse, metavar="FILE",
                       help="file of accepted evaluations and their answers (default: beside the socket)")
    found.add_argument("--threads", type=partial(COUNT.read, "--threads "), metavar="N",
                       help="evaluations at a time, most of which build or wait for a GPU (default: "
                            f"{THREADS}, or as many as the workers of --backend ray take)")
    found.add_argument("--max-waiting", type=partial(COUNT.read, "--max-waiting "), default=MOST_WAITING, metavar="N",
                       help=f"evaluations of each caller that may wait; more are refused (default: {MOST_WAITING})")
    found.add_argument("--backend", choices=("local", RAY), default="local",
                       help="evaluate on this machine, or on workers of a Ray cluster (default: local)")
    found.add_argument("--workers", type=partial(COUNT.read, "--workers "), default=1, metavar="N",
                       help="with --backend ray: number of workers, with a GPU each if there are any (default: 1)")
    found.add_argument("--cpus", type=partial(COUNT.read, "--cpus "), default=1, metavar="N",
                       help="with --backend ray: CPU cores of each worker, for its builds (default: 1)")
    found.add_argument("--ray-address", metavar="ADDRESS",
                       help="with --backend ray: the cluster (default: start Ray on this machine)")
    return found


@dataclass(frozen=True)
class Callers:
    """Who may ask over HTTP."""

    owners: Mapping[str, str]
    """The owner of each token."""
    limits: Mapping[str, int]
    """How many evaluations of an owner may wait, if the file says so."""


def _callers(path: Path) -> Callers:
    """Reads a token file. Raises UsageError."""
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {path}: {error}") from error
    if not lines or any(len(line) not in {2, 3} for line in lines) or len({line[1] for line in lines}) < len(lines):
        raise UsageError(f"--token-file {path}: write a line NAME TOKEN or NAME TOKEN LIMIT for each caller, each with "
                         "a token of its own")
    limits = {_owner(line[0]): COUNT.read(f"--token-file {path}: {line[0]} ", line[2])
              for line in lines if len(line) == 3}
    return Callers({line[1]: _owner(line[0]) for line in lines}, limits)


def _owner(name: str) -> str:
    return f"token {hashlib.sha256(name.encode()).hexdigest()[:16]}"


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


def _serve(given: Namespace, own: socket.socket, callers: Callers) -> None:
    from inlinebench.serve.app import App
    from inlinebench.serve.journal import Journal
    from inlinebench.serve.work import WorkQueue

    sockets: list[tuple[socket.socket, Mapping[str, str] | None]] = [(own, None)]
    where = str(folder() / SOCKET)
    if given.port is not None:
        host = given.host or "127.0.0.1"
        sockets.append((_tcp_socket(host, given.port), callers.owners))
        where += f" and http://{host}:{given.port}"
    opened, threads = _evaluator(given)
    with opened as evaluator:
        journal = Journal(given.journal or folder() / "service.sqlite")
        work = WorkQueue(journal, evaluator.answer, threads=given.threads or threads, most_waiting=given.max_waiting,
                         limits=callers.limits)
        print(f"serving at {where}", file=sys.stderr, flush=True)
        try:
            asyncio.run(_until_signal([(App(work, who), at) for at, who in sockets]))
        finally:
            work.close()


def _evaluator(given: Namespace) -> tuple[Evaluator, int]:
    """Returns what evaluates, and how many evaluations it can have at a time."""
    if given.backend == RAY:
        from inlinebench.ray import Pool

        pool = Pool(workers=given.workers, cpus=given.cpus, address=given.ray_address)
        return pool, pool.at_a_time
    from inlinebench.serve.evaluator import Evaluator

    return Evaluator(), THREADS


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
        for app, _ in served:
            app.end()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    await asyncio.gather(*(server.serve([at]) for server, at in servers))
