"""The judge's side of a candidate: starts it, exchanges messages within a time budget, stops, resumes and kills it.

The judge trusts no message of a candidate. Forms and nonces are checked here and in `inlinebench.process.replies`.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from inlinebench.builds.request import BadRequest, BuildOutcome, BuildRequest
from inlinebench.candidate import FILES
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.process.launcher import Launcher, Start
from inlinebench.process.running_kernel import running_kernel
from inlinebench.sandbox.gpu import Gpu
from inlinebench.sandbox.policy import Sandbox, clean_environment
from inlinebench.sandbox.removal import remove
from inlinebench.sandbox.supervisor import SIGNALLED
from inlinebench.sandbox.watchdog import Breach, Limits, Watchdog
from inlinebench.wire.channel import BadFrame, Channel, ChannelClosed, DeadlinePassed
from inlinebench.wire.own_python import python_of_solutions
from inlinebench.wire.processes import Stopped, forks_so_far, kill_tree, reap, stop_tree

FAILING = ("failed", "mismatch")
"""Operations of replies that report a failure. It may come before a call is held."""
LOG_TAIL_BYTES = 8192
"""The bytes of a candidate's output that `log` returns."""
EXIT_PATIENCE_S = 2.0
"""How long to wait for the exit status of a candidate that closed its channel, in seconds."""
MOST_BUILDS = 64
"""The most builds of one candidate. They do not count against its time."""


class CandidateTimedOut(Exception):
    """The candidate used up its time."""


class CandidateDied(Exception):
    """The candidate ended or closed its channel before it replied."""


class CandidateCheated(Exception):
    """The candidate sent a message that no honest candidate sends."""


class CandidateOverran(Exception):
    """The candidate broke one of its limits and was killed. `breach` is the limit."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.text)
        self.breach = breach


Build = Callable[[BuildRequest], BuildOutcome]
"""Builds an extension."""
OnHeld = Callable[[Mapping[str, Any]], None]
"""Is called with the message that a call is held and can be released."""


@dataclass(frozen=True)
class CandidateSpec:
    """What a candidate process may use."""

    budget: float
    """The time that it may take, in seconds. Only waiting for its replies counts, neither the judge's own work nor the
    builds that the candidate asks for."""
    limits: Limits
    """Limits on its memory, processes and files."""
    readable: tuple[Path, ...] = ()
    """Files and folders that it may read, in addition to those of every sandbox."""
    page: FlagPage | None = None
    """The flags of its blocking kernel. None where the clock needs none."""
    protected: tuple[int, ...] = ()
    """Further processes that it must not send signals to."""
    gpu: Gpu | None = None
    """The GPU that it may use."""
    under: tuple[str, ...] = ()
    """The command of a tool that starts it."""


class CandidateProcess:
    """One candidate process, from start to end. `start` makes one. Leaving its context kills it.

    Args:
        pid: the process id of its supervisor.
        channel: to the process.
        scratch: its working folder.
        log: the file that it writes its output to.
        watchdog: enforces its limits.
        spec: what it may use.
        build: builds the extensions that it asks for.
    """

    def __init__(
        self, pid: int, channel: Channel, scratch: Path, *, log: BinaryIO, watchdog: Watchdog, spec: CandidateSpec,
        build: Build,
    ) -> None:
        self.budget, self.page = spec.budget, spec.page
        self.scratch = scratch
        self.builds: list[BuildOutcome] = []
        """The outcomes of its builds."""
        self.workload = ""
        """The name of the workload that requests are about."""
        self.shown_ms: float | None = None
        """The time that its clock reports for an empty kernel, if it was measured."""
        self._pid, self._channel, self._log, self._watchdog, self._build = pid, channel, log, watchdog, build
        self._has_gpu = spec.gpu is not None
        self._status: int | None = None
        self._stopped = Stopped()
        self._killed: set[int] = set()

    @classmethod
    def start(cls, launcher: Launcher, spec: CandidateSpec, build: Build) -> CandidateProcess:
        """Starts a candidate process. Its channel, scratch folder and log are open as long as it lives."""
        scratch = Path(tempfile.mkdtemp(prefix="inlinebench-")).resolve()
        # Not in the scratch folder, where the candidate could replace it by a link.
        log = tempfile.TemporaryFile()  # noqa: SIM115
        ours, theirs = socket.socketpair()
        # A tool needs sockets to the candidate and access to its memory, which a sandbox forbids.
        sandbox = Sandbox() if spec.under else launcher.sandbox
        protected = (os.getpid(), os.getppid(), launcher.pid, *spec.protected)
        policy = sandbox.policy(scratch, spec.readable, protected, spec.gpu)
        forks_before = forks_so_far()
        with theirs:
            start = Start(scratch, _environment(scratch, spec.gpu), policy, theirs.fileno(), log.fileno(),
                          None if spec.page is None else spec.page.fd)
            pid = launcher.launch(start, spec.under)
        watchdog = Watchdog(pid, scratch, spec.limits, forks_before)
        return cls(pid, Channel(ours), scratch, log=log, watchdog=watchdog, spec=spec, build=build)

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process id of its supervisor."""
        return self._pid

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._wait(0.0) is None

    def post(self, operation: str, descriptor: int | None = None, **facts: Any) -> None:
        """Sends a request without waiting for the reply, which `collect` returns later. Raises as `ask` does.

        `descriptor` is a file descriptor that the candidate gets with the request.
        """
        self._nonce = secrets.token_hex(16)
        with self._channel_errors():
            self._send({"op": operation, "nonce": self._nonce, "workload": self.workload, **facts}, descriptor)

    def ask(self, operation: str, on_held: OnHeld | None = None, **facts: Any) -> dict[str, Any]:
        """Sends a request as `post` does, and returns the reply.

        Serves the candidate's own requests in between: it builds extensions, and calls `on_held` with the message that
        a call can be released. Raises CandidateTimedOut, CandidateDied, CandidateCheated or CandidateOverran,
        and FrameTooLarge if the request is too large for a message.
        """
        self.post(operation, **facts)
        return self.collect(on_held)

    def collect(self, on_held: OnHeld | None = None) -> dict[str, Any]:
        """Returns the reply to the last posted request. Raises as `ask` does."""
        with self._channel_errors():
            while (reply := self._receive())["op"] in ("build", "held"):
                if reply["op"] == "build":
                    self._serve_build(reply)
                elif on_held is None or reply.get("nonce") != self._nonce:
                    raise CandidateCheated("unexpected message from the solution's process: it answers no request")
                else:
                    on_held(reply)
                    on_held = None  # at most once
        if reply.get("nonce") != self._nonce:
            raise CandidateCheated("unexpected message from the solution's process: it answers no request")
        if on_held is not None and reply["op"] not in FAILING:
            raise CandidateCheated("unexpected message from the solution's process: it answers before it was held")
        return reply

    def proceed(self) -> None:
        """Tells a candidate that waits in a call to go on. For `on_held`."""
        self._send({"op": "proceed"})

    @contextmanager
    def _channel_errors(self) -> Iterator[None]:
        """Converts errors of the channel to errors of the candidate."""
        try:
            yield
        except ChannelClosed:
            end = self._describe_end()
            if self._watchdog.breach is not None:
                raise CandidateOverran(self._watchdog.breach) from None
            raise CandidateDied(end) from None
        except BadFrame as error:
            raise CandidateCheated(f"malformed message from the solution's process: {error}") from None

    def stop(self) -> None:
        """Stops the whole process tree, so that none of it runs at the same time as the reference.

        Raises CandidateCheated if a process does not stop.
        """
        try:
            self._stopped = stop_tree(self._pid, self._watchdog.forks_before)
        except TimeoutError as error:
            raise CandidateCheated(str(error)) from None

    def verify_stopped(self) -> None:
        """Raises CandidateCheated if one of the stopped processes has run since `stop`."""
        if self._watchdog.breach is None and self._stopped.ran():
            raise CandidateCheated("the solution's process ran while it was stopped for the judge to check a call")

    def resume(self) -> None:
        """Resumes the stopped processes. Raises as `verify_stopped` does."""
        self.verify_stopped()
        self._stopped.resume()
        self._stopped = Stopped()

    def cut_short(self) -> None:
        """Kills it from another thread. A waiting `ask` then raises CandidateDied."""
        self._killed |= kill_tree(self._pid)

    def finish(self, patience: float) -> None:
        """Closes the channel and waits until the candidate ends, for at most `patience` seconds.

        For tools that report when the program ends.
        """
        self._stopped.resume()
        self._channel.close()
        self._wait(patience)

    def log(self) -> str:
        """Returns the end of the output of the candidate and its children, with the author's paths."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), LOG_TAIL_BYTES, max(0, size - LOG_TAIL_BYTES))
        return tail.decode(errors="replace").strip().replace(f"{self.scratch / FILES}/", "/")

    def running_kernel(self) -> str:
        """Returns the kernel that a candidate on the CPU is in, with block, thread and line; "" if it is in none."""
        return running_kernel(self._pid, self.log)

    def kill(self) -> None:
        """Kills the candidate and every process that it started, and removes its scratch folder."""
        self._watchdog.close()
        self._killed |= kill_tree(self._pid)
        self._wait(None)
        reap([self._pid])
        reap(self._killed)
        self._channel.close()
        if self.page is not None:
            self.page.close()
        self._log.close()
        remove(self.scratch)

    def _send(self, frame: dict[str, Any], descriptor: int | None = None) -> None:
        self._timed(lambda: self._channel.send(frame, self.budget, descriptor))

    def _receive(self) -> dict[str, Any]:
        frame = self._timed(lambda: self._channel.receive(self.budget))
        if not isinstance(frame.get("op"), str):
            raise CandidateCheated("malformed message from the solution's process: it has no operation")
        return dict(frame)

    def _timed(self, act: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        try:
            return act()
        except DeadlinePassed:
            raise CandidateTimedOut() from None
        finally:
            self.budget -= time.monotonic() - begin

    def _serve_build(self, frame: Mapping[str, Any]) -> None:
        try:
            request = BuildRequest.from_json(frame["request"])
        except (BadRequest, KeyError, TypeError) as error:
            raise CandidateCheated(f"invalid build request from the solution's process: {error}") from None
        if len(self.builds) == MOST_BUILDS:
            raise CandidateCheated(f"the solution's process requested more than {MOST_BUILDS} builds")
        outcome = self._build(request)
        self.builds.append(outcome)
        self._send({"op": "built", "library": str(outcome.library or ""), "reason": outcome.reason})

    def _describe_end(self) -> str:
        status = self._wait(EXIT_PATIENCE_S)
        if status is None:
            return "closed its channel to the judge"
        number = -status if status < 0 else status - SIGNALLED
        if number > 0:
            return killed_by(number, has_gpu=self._has_gpu)
        return f"exited with status {status} before it replied"

    def _wait(self, patience: float | None) -> int | None:
        """Waits for at most `patience` seconds (None: forever). Returns the exit status, or None if it still runs.

        A negative status is the number of the signal that killed the supervisor. The process stays unreaped, so that
        nothing else gets its PID before it is killed.
        """
        deadline = None if patience is None else time.monotonic() + patience
        while self._status is None:
            end = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None:
                self._status = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            elif deadline is not None and time.monotonic() > deadline:
                return None
            else:
                time.sleep(0.002)
        return self._status


def killed_by(number: int, *, has_gpu: bool) -> str:
    """Describes the end of a solution's process by a signal."""
    if number not in set(signal.Signals):
        return f"was killed by signal {number}"
    killed = f"was killed by {signal.Signals(number).name}"
    if number not in (signal.SIGSEGV, signal.SIGBUS):
        return killed
    if not has_gpu:  # where kernels run on the host as well
        return f"{killed}: it accessed memory that is not its own"
    return (f"{killed}: code on the host accessed memory that is not its own; only kernels can access the data of a "
            "tensor on the GPU")


def _environment(scratch: Path, gpu: Gpu | None) -> dict[str, str]:
    """Returns the harmless part of the judge's environment, with home, temporary and cache folders in scratch."""
    folders = {name: str(scratch) for name in ("HOME", "TMPDIR")}
    own = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
    caches = {name: str(scratch / name.lower()) for name in own}
    # The worker processes in which TorchInductor compiles do not always see the GPU here. Whether it uses them at all
    # depends on how early a solution compiles.
    compiling = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    # With CUDA_LAUNCH_BLOCKING, a launch would wait for the blocking kernel.
    kept = {name: value for name, value in clean_environment(os.environ).items() if name != "CUDA_LAUNCH_BLOCKING"}
    visible = "" if gpu is None else gpu.visible
    seen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return {**kept, **folders, **caches, **compiling, **seen, **python_of_solutions(), "PYTHONUNBUFFERED": "1"}
