"""The scheduler's connection to a judge: sends requests, serves builds, and returns results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inlinebench.builds.request import NoRuntimeLibraries, RuntimeLibraries
from inlinebench.errors import JudgeDied, NoDevice
from inlinebench.messages import (
    Done,
    Hello,
    Init,
    Jobs,
    NeedBuild,
    NeedInit,
    NeedRuntimeLibraries,
    ProblemAt,
    Settings,
    Status,
)
from inlinebench.process.steps import Receiver
from inlinebench.scheduler.judge_process import Scratch, environment

if TYPE_CHECKING:
    from inlinebench.compile.service import BuildService


class JudgeClient:
    """A judge process and the connection to it.

    The judge's temporary files are in `scratch`; `more` extends its environment. Methods that talk to the judge raise
    JudgeDied if the process has ended, and StepTimedOut if a step of a problem's own code hangs in it.
    """

    def __init__(
        self, scratch: Scratch, on_progress: Callable[[str], None], more: Mapping[str, str] | None = None
    ) -> None:
        self._on_progress = on_progress
        self.usable = True
        self._process = scratch.process()
        self._connection = self._process.connection
        self._receiver = Receiver(self._connection)
        with suppress(OSError):  # `hello` reports a judge that has ended
            self._connection.send({**environment(scratch.path), **(more or {})})
        self._service: BuildService | None = None
        self._given: tuple[str, ...] = ()

    def hello(self, settings: Settings) -> Hello:
        """Sends the settings and returns the judge's reply. Raises NoDevice if its device cannot be used."""
        self._problem_timeout = settings.problem_timeout
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
        """Sets the service for the judge's builds."""
        self._service = service

    def evaluate(self, jobs: Jobs) -> Done:
        """Returns the results of evaluations. Serves builds and progress messages meanwhile."""
        self._given = tuple(map(str, jobs[0].given))
        done = self._ask(jobs)
        assert isinstance(done, Done)
        self.usable = done.usable
        return done

    def init_arguments(self, problem: ProblemAt) -> Init:
        """Returns the pickled constructor arguments of a problem, or the reason why it has none."""
        init = self._ask(NeedInit(problem))
        assert isinstance(init, Init)
        return init

    @property
    def step(self) -> str:
        """The step of a problem's own code that runs or was the last before the judge ended. "" between steps."""
        return self._receiver.step

    def log(self) -> str:
        """Returns the end of the output of the judge, the problems and the references."""
        return self._process.log()

    def kill(self) -> None:
        """Kills the judge and all its descendants."""
        self._process.kill()

    def _ask(self, request: Any) -> Any:
        try:
            self._connection.send(request)
        except OSError as error:
            raise JudgeDied(self._describe_end()) from error
        while True:
            message = self._receive()
            if isinstance(message, Status):
                self._on_progress(message.text)
            elif isinstance(message, NeedBuild | NeedRuntimeLibraries):
                self._serve(message)
            else:
                return message

    def _serve(self, need: NeedBuild | NeedRuntimeLibraries) -> None:
        assert self._service is not None
        self._on_progress("building")
        if isinstance(need, NeedBuild):
            self._connection.send(self._service.build(replace(need.request, readable=self._given)))
        else:
            self._connection.send(_runtime_libraries(self._service))

    def _receive(self) -> Any:
        try:
            return self._receiver.receive(self._problem_timeout, self._on_progress)
        except (EOFError, OSError) as error:
            raise JudgeDied(self._describe_end()) from error

    def _describe_end(self) -> str:
        status = self._process.wait()
        return f"the judge ended with status {status}"


def _runtime_libraries(service: BuildService) -> RuntimeLibraries | str:
    try:
        return service.runtime_libraries()
    except NoRuntimeLibraries as error:
        return str(error)
