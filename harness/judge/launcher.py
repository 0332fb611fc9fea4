"""Starts candidates through a forkserver, and one forkserver after the other if need be."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from harness.sandbox.policy import Policy, Sandbox, clean_environment
from harness.wire.processes import become_subreaper

PACKAGE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Start:
    """How a candidate is to start: its folder, its environment (which replaces ours), and its sandbox.

    `descriptors` are: frames in, frames out, log. `shared` are those of shared memory, by name: `page`, `arena`.
    """

    folder: Path
    environment: Mapping[str, str]
    policy: Policy
    descriptors: tuple[int, int, int]
    shared: Mapping[str, int]


class Launcher:
    """Thread-safe. Makes this process a subreaper, because candidates become its children.

    Candidates run in `sandbox`. Raises OSError if the kernel refuses.
    """

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        become_subreaper()
        self.sandbox = sandbox or Sandbox()
        self._lock = Lock()
        self._start()

    @property
    def pid(self) -> int:
        """The forkserver's process number."""
        return self._process.pid

    def launch(self, start: Start, under: Sequence[str] = ()) -> int:
        """Starts a candidate; gives its process number, which is a child of this process.

        It is inside its sandbox before anything of a solution runs. `under` is a program that is to start it, with its
        arguments; such a candidate has to import torch itself.
        """
        descriptors = [*start.descriptors, *start.shared.values()]
        order: dict[str, Any] = {
            "folder": str(start.folder), "policy": start.policy.to_json(), "shared": list(start.shared),
        }
        if under:
            return self._launch_under(under, order, start.environment, descriptors)
        order |= {"environment": dict(start.environment), "parent": os.getpid()}
        with self._lock:
            if self._process.poll() is not None:
                self._start()
            socket.send_fds(self._orders, [json.dumps(order).encode()], list(descriptors))
            return int(json.loads(self._orders.recv(1 << 12))["pid"])

    def _launch_under(
        self, under: Sequence[str], order: Mapping[str, Any], environment: Mapping[str, str], descriptors: Sequence[int]
    ) -> int:
        """The tool adds to the environment what its part inside the candidate needs, so the order doesn't hold one.

        Each tensor gets a block of its own from CUDA, whose ends the tool knows: torch's allocator rounds sizes up.
        """
        log = descriptors[2]
        own = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        command = [*under, sys.executable, "-m", "harness.candidate", json.dumps(order), *map(str, descriptors)]
        # Reaped by whoever asks for its status: nothing else is done with this object.
        process = subprocess.Popen(
            command, pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**environment, **own}, cwd=order["folder"],
        )
        process.returncode = 0
        return process.pid

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
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            # Clean here already: what it is started with stays readable in every process that is forked from it.
            env={**clean_environment(os.environ), "PYTHONPATH": path},
            start_new_session=True,
        )
        theirs.close()
