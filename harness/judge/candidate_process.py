"""The judge's end of a candidate: starts it, talks to it within a time budget, stops, resumes and kills it.

Nothing that a candidate says is believed: every frame is checked for its form and its nonce here.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.build.request import BadRequest, BuildOutcome, BuildRequest
from harness.wire.channel import BadFrame, Channel, ChannelClosed, DeadlinePassed
from harness.wire.processes import kill_stray_children, kill_tree, signal_tree

LOG_TAIL_BYTES = 8192
EXIT_PATIENCE_S = 2.0


class CandidateTimedOut(Exception):
    """The candidate used up its time."""


class CandidateDied(Exception):
    """The candidate ended, or closed its channel, before it answered."""


class CandidateCheated(Exception):
    """The candidate sent what no honest one sends."""


Build = Callable[[BuildRequest], BuildOutcome]


class CandidateProcess:
    """One candidate, from start to kill; a context manager.

    `budget` is what is left of its time in seconds: only waiting for its answers counts, not the judge's own work and
    not the builds that it asks for. `builds` collects the outcome of those. Given `keep`, every other process
    below ours is killed with the candidate, so that none that it orphaned survives. Without `gpus` it sees none.
    """

    def __init__(
        self, budget: float, build: Build, arena_fd: int | None = None, keep: tuple[int, ...] | None = None,
        gpus: bool = True,
    ) -> None:
        self.budget = budget
        self.builds: list[BuildOutcome] = []
        self._build, self._keep = build, keep
        self.scratch = Path(tempfile.mkdtemp(prefix="inlinebench-"))
        self._log = self.scratch / "log"
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        inherited = [theirs_in, theirs_out, *([] if arena_fd is None else [arena_fd])]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.candidate", str(theirs_in), str(theirs_out)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, pass_fds=inherited,
                cwd=self.scratch, env=_environment(self.scratch, gpus), start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._channel = Channel(ours_in, ours_out)

    def __enter__(self) -> CandidateProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ask(self, operation: str, **facts: Any) -> dict[str, Any]:
        """Sends a request and gives the answer, after serving the builds that come in between.

        Raises CandidateTimedOut, CandidateDied or CandidateCheated.
        """
        nonce = secrets.token_hex(16)
        try:
            self._send({"op": operation, "nonce": nonce, **facts})
            while (answer := self._receive())["op"] == "build":
                self._serve_build(answer)
        except ChannelClosed:
            raise CandidateDied(self._describe_end()) from None
        except BadFrame as error:
            raise CandidateCheated(f"the candidate sent something that is no frame: {error}") from None
        if answer.get("nonce") != nonce:
            raise CandidateCheated("the candidate sent a frame that answers no question of the judge's")
        return answer

    def stop(self) -> None:
        """Stops the whole process tree, so that nothing of it runs beside the reference."""
        signal_tree(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        signal_tree(self._process.pid, signal.SIGCONT)

    def log(self) -> str:
        """The tail of what the candidate and its children printed."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()

    def kill(self) -> None:
        """Ends the candidate with everything that it started, and removes its scratch directory."""
        kill_tree(self._process.pid)
        self._process.wait()
        if self._keep is not None:
            kill_stray_children(self._keep)
        self._channel.close()
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
        outcome = self._build(request)
        self.builds.append(outcome)
        self._send({"op": "built", "library": str(outcome.library or ""), "reason": outcome.reason})

    def _describe_end(self) -> str:
        try:
            status = self._process.wait(EXIT_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return "closed its channel to the judge"
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"left with exit status {status} before it answered"


def _environment(scratch: Path, gpus: bool) -> dict[str, str]:
    """The judge's environment, with everything that writes to a home or temporary directory sent to scratch."""
    places = {name: str(scratch) for name in ("HOME", "TMPDIR")}
    own = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
    caches = {name: str(scratch / name.lower()) for name in own}
    # A launch that waits for its kernel would wait for the hold as well.
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_LAUNCH_BLOCKING"}
    package = str(Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    hidden = {} if gpus else {"CUDA_VISIBLE_DEVICES": ""}
    return {**kept, **places, **caches, **hidden, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
