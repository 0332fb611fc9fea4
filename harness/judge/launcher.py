"""Starts candidates through a forkserver, and one forkserver after the other if need be."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from harness.wire.processes import become_subreaper

PACKAGE = Path(__file__).resolve().parent.parent.parent


class Launcher:
    """Thread-safe. Makes this process a subreaper, because candidates become its children.

    Raises OSError if the kernel refuses.
    """

    def __init__(self) -> None:
        become_subreaper()
        self._lock = Lock()
        self._start()

    @property
    def pid(self) -> int:
        """The forkserver's process number."""
        return self._process.pid

    def launch(self, folder: Path, environment: Mapping[str, str], descriptors: Sequence[int]) -> int:
        """Starts a candidate in a folder; gives its process number, which is a child of this process.

        `descriptors` are: frames in, frames out, log, and the arena's on the CPU. The environment replaces ours.
        """
        order = {"folder": str(folder), "environment": dict(environment), "parent": os.getpid()}
        with self._lock:
            if self._process.poll() is not None:
                self._start()
            socket.send_fds(self._orders, [json.dumps(order).encode()], list(descriptors))
            return int(json.loads(self._orders.recv(1 << 12))["pid"])

    def close(self) -> None:
        """Ends the forkserver; candidates that run go on."""
        self._orders.close()
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        # One order, one message: the kind of socket that keeps their borders.
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.candidate.forkserver", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        theirs.close()
