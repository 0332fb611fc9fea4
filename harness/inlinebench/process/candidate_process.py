"""The judge's end of a candidate: starts it, talks to it within a time budget, stops, resumes and kills it.

Nothing that a candidate says is believed: every frame is checked for its form and its nonce here.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inlinebench.candidate import FILES
from inlinebench.process.launcher import PACKAGE, Launcher, Start
from inlinebench.records.build_request import BadRequest, BuildOutcome, BuildRequest
from inlinebench.sandbox.policy import Sandbox, clean_environment
from inlinebench.sandbox.watchdog import Breach, Limits, Watchdog
from inlinebench.timing.flags import FlagPage
from inlinebench.wire.channel import BadFrame, Channel, ChannelClosed, DeadlinePassed
from inlinebench.wire.processes import bury, forks_so_far, kill_stray_children, kill_tree, resume_tree, stop_tree

LOG_TAIL_BYTES = 8192
EXIT_PATIENCE_S = 2.0
MOST_BUILDS = 64
"""For one candidate: they don't count against its time."""


class CandidateTimedOut(Exception):
    """The candidate used up its time."""


class CandidateDied(Exception):
    """The candidate ended, or closed its channel, before it answered."""


class CandidateCheated(Exception):
    """The candidate sent what no honest one sends."""


class CandidateOverran(Exception):
    """The candidate broke one of its limits and was killed."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.text)
        self.breach = breach


Build = Callable[[BuildRequest], BuildOutcome]


class CandidateProcess:
    """One candidate, from start to kill; a context manager.

    `budget` is what is left of its time in seconds: only waiting for its answers counts, not the judge's own work and
    not the builds that it asks for. `builds` collects the outcome of those. It reads the files `readable` beside what
    every sandbox reads. Given `keep`, every other process below ours is killed with the candidate, so that none that it
    orphaned survives. Without `gpus` it sees none. `shared` and `under` are as for the launcher.
    """

    def __init__(
        self, launcher: Launcher, budget: float, limits: Limits, build: Build, *, readable: Sequence[Path] = (),
        shared: Mapping[str, int] | None = None, page: FlagPage | None = None,
        keep: Callable[[], tuple[int, ...]] | None = None, gpus: bool = True, under: Sequence[str] = (),
    ) -> None:
        self.budget, self.page = budget, page
        self.builds: list[BuildOutcome] = []
        self.shown_ms: float | None = None
        """What its clock shows for a kernel that does nothing, where it was asked before it loaded a solution."""
        self._build, self._keep = build, keep
        self._status: int | None = None
        self._stopped: list[int] = []
        self._killed: set[int] = set()
        self.scratch = Path(tempfile.mkdtemp(prefix="inlinebench-")).resolve()
        # Not in the scratch folder, where the candidate could put a link in its place.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the candidate lives
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        protected = (os.getpid(), os.getppid(), launcher.pid, *(keep() if keep else ()))
        # A tool that starts the candidate talks to it through sockets, and looks into it.
        sandbox = Sandbox() if under else launcher.sandbox
        policy = sandbox.policy(self.scratch, readable, protected, gpus)
        descriptors = (theirs_in, theirs_out, self._log.fileno())
        given = {**(shared or {}), **({} if page is None else {"page": page.fd})}
        start = Start(self.scratch, _environment(self.scratch, gpus), policy, descriptors, given)
        self._forks_before = forks_so_far()
        self._pid = launcher.launch(start, under)
        os.close(theirs_in)
        os.close(theirs_out)
        self._channel = Channel(ours_in, ours_out)
        self._watchdog = Watchdog(self._pid, self.scratch, limits, self._forks_before)

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._pid

    def is_running(self) -> bool:
        """Whether it hasn't ended."""
        return self._wait(0.0) is None

    def post(self, operation: str, **facts: Any) -> None:
        """Sends a request whose answer `collect` gives, some time later. Raises as `ask` does."""
        self._nonce = secrets.token_hex(16)
        with self._blaming():
            self._send({"op": operation, "nonce": self._nonce, **facts})

    def ask(self, operation: str, on_queued: Callable[[], None] | None = None, **facts: Any) -> dict[str, Any]:
        """Sends a request and gives the answer, after serving what comes in between: builds, and that work is queued.

        Raises CandidateTimedOut, CandidateDied, CandidateCheated or CandidateOverran, and FrameTooLarge for facts that
        no frame holds.
        """
        self.post(operation, **facts)
        return self.collect(on_queued)

    def collect(self, on_queued: Callable[[], None] | None = None) -> dict[str, Any]:
        """The answer to what was posted last. Raises as `ask` does."""
        with self._blaming():
            while (reply := self._receive())["op"] in ("build", "queued"):
                if reply["op"] == "build":
                    self._serve_build(reply)
                elif on_queued is None or reply != {"op": "queued", "nonce": self._nonce}:
                    raise CandidateCheated("the candidate sent a frame that answers no question of the judge's")
                else:
                    on_queued()
                    on_queued = None  # once
        if reply.get("nonce") != self._nonce:
            raise CandidateCheated("the candidate sent a frame that answers no question of the judge's")
        return reply

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """What goes wrong with the channel is the candidate's doing."""
        try:
            yield
        except ChannelClosed:
            end = self._describe_end()
            if self._watchdog.breach is not None:
                raise CandidateOverran(self._watchdog.breach) from None
            raise CandidateDied(end) from None
        except BadFrame as error:
            raise CandidateCheated(f"the candidate sent something that is no frame: {error}") from None

    def stop(self) -> None:
        """Stops the whole process tree, so that nothing of it runs beside the reference.

        Raises CandidateCheated if it can't be stopped.
        """
        try:
            self._stopped = stop_tree(self._pid, self._forks_before)
        except TimeoutError as error:
            raise CandidateCheated(str(error)) from None

    def resume(self) -> None:
        """Lets what was stopped go on."""
        resume_tree(self._stopped)
        self._stopped = []

    def cut_short(self) -> None:
        """Kills it from another thread: an `ask` that waits raises CandidateDied."""
        self._killed |= kill_tree(self._pid)

    def finish(self, patience: float) -> None:
        """Has the candidate end by itself, for a tool that reports at the end; waits for that so long (s)."""
        self.resume()
        self._channel.close()
        self._wait(patience)

    def log(self) -> str:
        """The tail of what the candidate and its children printed, with the author's names of the solution's files."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), LOG_TAIL_BYTES, max(0, size - LOG_TAIL_BYTES))
        return tail.decode(errors="replace").strip().replace(f"{self.scratch / FILES}/", "/")

    def kill(self) -> None:
        """Ends the candidate with everything that it started, and removes its scratch directory."""
        self._watchdog.close()
        self._killed |= kill_tree(self._pid)
        self._wait(None)
        if self._keep is not None:
            kill_stray_children(self._keep())
        bury(self._killed)
        self._channel.close()
        if self.page is not None:
            self.page.close()
        self._log.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _send(self, frame: dict[str, Any]) -> None:
        self._timed(lambda: self._channel.send(frame, self.budget))

    def _receive(self) -> dict[str, Any]:
        frame = self._timed(lambda: self._channel.receive(self.budget))
        if not isinstance(frame.get("op"), str):
            raise CandidateCheated("the candidate sent a frame without an operation")
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
            raise CandidateCheated(f"the candidate sent a build request of no known form: {error}") from None
        if len(self.builds) == MOST_BUILDS:
            raise CandidateCheated(f"the candidate asked for more than {MOST_BUILDS} builds")
        outcome = self._build(request)
        self.builds.append(outcome)
        self._send({"op": "built", "library": str(outcome.library or ""), "reason": outcome.reason})

    def _describe_end(self) -> str:
        status = self._wait(EXIT_PATIENCE_S)
        if status is None:
            return "closed its channel to the judge"
        if status < 0:
            named = -status in set(signal.Signals)
            return f"was killed by {signal.Signals(-status).name if named else f'signal {-status}'}"
        return f"left with exit status {status} before it answered"

    def _wait(self, patience: float | None) -> int | None:
        """The exit status (negative: the signal that killed it), or None if it lives on for longer than that (s)."""
        deadline = None if patience is None else time.monotonic() + patience
        while self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif deadline is not None and time.monotonic() > deadline:
                return None
            else:
                time.sleep(0.002)
        return self._status


def _environment(scratch: Path, gpus: bool) -> dict[str, str]:
    """What is harmless of the judge's environment, with everything that writes to a home or cache sent to scratch."""
    places = {name: str(scratch) for name in ("HOME", "TMPDIR")}
    own = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
    caches = {name: str(scratch / name.lower()) for name in own}
    # A launch that waits for its kernel would wait for the hold as well.
    kept = {name: value for name, value in clean_environment(os.environ).items() if name != "CUDA_LAUNCH_BLOCKING"}
    path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    hidden = {} if gpus else {"CUDA_VISIBLE_DEVICES": ""}
    return {**kept, **places, **caches, **hidden, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
