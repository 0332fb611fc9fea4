"""The service that service_kills.py starts and kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from inlinebench import Client
from inlinebench.errors import ServerDied
from inlinebench.serve.place import SOCKET
from inlinebench.wire.processes import descendants, kill_tree

START_S = 120.0
"""The longest time until a started service answers, in seconds."""
END_S = 10.0
"""The longest time until the processes of a killed service have ended, in seconds."""
_JUDGE, _FORKSERVER = b"\0inlinebench.judge\0", b"\0inlinebench.process.forkserver\0"
"""What the command lines of these processes contain. Forks of a process share its command line."""


class Service:
    """`inlinebench serve` with a runtime folder and a folder of temporary files of its own.

    It is the leader of a process group, as a service of systemd or a job of a cluster is.
    """

    def __init__(self, folder: Path, most_waiting: int) -> None:
        self._folder, self._most_waiting = folder, most_waiting
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.journal = folder / "journal.sqlite"
        self.left_behind: list[str] = []
        """The command lines of processes of killed services that had to be ended."""
        self.start_s: list[float] = []
        """How long each start took until the service answered, in seconds."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self._folder / f"inlinebench-{os.getuid()}" / SOCKET

    def start(self) -> None:
        """Starts the service. `wait` waits until it answers."""
        self._begin = time.monotonic()
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self._folder), "TMPDIR": str(self.temporary)}
        command = [sys.executable, "-m", "inlinebench", "serve", "--journal", str(self.journal),
                   "--max-waiting", str(self._most_waiting)]
        with (self._folder / "service.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait(self) -> None:
        """Waits until the service answers. Raises RuntimeError if it ends or takes too long."""
        assert self._process is not None
        while True:
            try:
                Client(self.socket, patience=0).health()
            except ServerDied:
                if self._process.poll() is not None or time.monotonic() - self._begin > START_S:
                    raise RuntimeError((self._folder / "service.log").read_text()[-2000:]) from None
                time.sleep(0.05)
            else:
                self.start_s.append(time.monotonic() - self._begin)
                return

    def kill(self) -> None:
        """Kills its process group, and ends and counts what has not ended by itself soon after."""
        assert self._process is not None
        below = descendants(self._process.pid)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + END_S
        while (left := [pid for pid in below if _is_running(pid)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in left:
            self.left_behind.append(f"{pid}: {_command(pid).replace(bytes(1), b' ').decode(errors='replace')}")
            kill_tree(pid)

    def end(self) -> None:
        """Ends the service as Ctrl-C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def kill_worker(self, draw: random.Random) -> str:
        """Kills a judge or a forkserver. Returns which, or "" if there is none.

        Processes that run a solution are not killed: their end is the solution's.
        """
        assert self._process is not None
        found = _workers(self._process.pid)
        kind = draw.choice(sorted(found)) if found else ""
        try:
            if kind:
                os.kill(draw.choice(found[kind]), signal.SIGKILL)
        except ProcessLookupError:
            return ""
        return kind


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _workers(service: int) -> dict[str, list[int]]:
    """Returns the process ids of the harness's own processes below a service, by what they are."""
    found: dict[str, list[int]] = {}
    for pid in descendants(service):
        command, above = _command(pid), _command(_parent(pid))
        if _JUDGE in command and _JUDGE not in above:
            found.setdefault("judge", []).append(pid)
        elif (_JUDGE in command or _FORKSERVER in command) and _leads_session(pid) and not _is_solution(pid):
            found.setdefault("forkserver", []).append(pid)
    return found


def _is_solution(pid: int) -> bool:
    """Whether a fork of a judge or a forkserver is a candidate: its parent, a supervisor, is a fork as well."""
    above = _parent(pid)
    return _FORKSERVER in _command(above) or _JUDGE in _command(_parent(above))


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
