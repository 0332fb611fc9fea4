"""The orchestrator's end of a judge: starts it, serves what it needs, and passes results on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.request import NoSupport, Support
from harness.errors import JudgeDied, NoDevice
from harness.judge.messages import (
    Done,
    Evaluate,
    Hello,
    Init,
    NeedBuild,
    NeedInit,
    NeedSupport,
    ProblemAt,
    Progress,
    Settings,
)
from harness.result import Result
from harness.sandbox.policy import clean_environment
from harness.wire.processes import become_subreaper, bury, kill_tree

if TYPE_CHECKING:
    from harness.build.service import BuildService

LOG_TAIL_BYTES = 4096


class JudgeClient:
    """One judge process, whose temporary files lie below `scratch`, with more in its environment if that is given.

    It starts at once and waits for its settings.

    `hello` raises NoDevice if its device can't be used; every method raises JudgeDied if the process ends.
    """

    def __init__(
        self, scratch: Path, on_progress: Callable[[str], None], environment: Mapping[str, str] | None = None
    ) -> None:
        self._on_progress = on_progress
        self.usable = True
        become_subreaper()  # of what a judge that dies leaves
        whole = {**_environment(scratch), **(environment or {})}
        self._connection, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the judge lives
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.judge", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=clean_environment(whole) | {"TMPDIR": str(scratch)}, start_new_session=True,
        )
        theirs.close()
        with suppress(OSError):  # if it has ended, `hello` says so
            self._connection.send(whole)
        self._service: BuildService | None = None

    def hello(self, settings: Settings) -> Hello:
        """What the judge says to its settings. Raises NoDevice."""
        try:
            self._connection.send(settings)
        except OSError as error:
            raise JudgeDied(self._describe_end()) from error
        hello = self._receive()
        assert isinstance(hello, Hello)
        if hello.unusable:
            raise NoDevice(hello.unusable)
        return hello

    def use(self, service: BuildService) -> None:
        """Builds for this judge go to the service."""
        self._service = service

    def evaluate(self, job: Evaluate) -> Result:
        """The result of one evaluation; builds and progress on the way are served."""
        done = self._ask(job)
        assert isinstance(done, Done)
        self.usable = done.usable
        return done.result

    def init_arguments(self, problem: ProblemAt) -> Init:
        """The pickled arguments of a problem's constructor, or why it can't give them."""
        init = self._ask(NeedInit(problem))
        assert isinstance(init, Init)
        return init

    def log(self) -> str:
        """The tail of what the judge, the problems and the references printed."""
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace").strip()

    def kill(self) -> None:
        """Ends the judge with its rehearsal, its candidates and all that these started.

        There is no gentler end: all that they write lies below `scratch`, and to take torch and CUDA down piece by
        piece takes most of a second.
        """
        below = kill_tree(self._process.pid)
        self._process.wait()
        bury(below)
        self._connection.close()

    def _ask(self, request: Any) -> Any:
        try:
            self._connection.send(request)
        except OSError as error:
            raise JudgeDied(self._describe_end()) from error
        while True:
            message = self._receive()
            if isinstance(message, Progress):
                self._on_progress(message.text)
            elif isinstance(message, NeedBuild | NeedSupport):
                self._serve(message)
            else:
                return message

    def _serve(self, need: NeedBuild | NeedSupport) -> None:
        assert self._service is not None
        self._on_progress("building")
        answer = self._service.build(need.request) if isinstance(need, NeedBuild) else _support(self._service)
        self._connection.send(answer)

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise JudgeDied(self._describe_end()) from error

    def _describe_end(self) -> str:
        status = self._process.wait()
        return f"the judge ended with status {status}"


def _support(service: BuildService) -> Support | str:
    try:
        return service.support()
    except NoSupport as error:
        return str(error)


def _environment(scratch: Path) -> dict[str, str]:
    package = str(Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)}
