"""Starts processes through a forkserver, and one forkserver after the other if need be."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from inlinebench.candidate import NVML_CHECK
from inlinebench.sandbox.policy import Policy, Sandbox, clean_environment
from inlinebench.wire.processes import Child, become_subreaper, close_all_but

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
    """Thread-safe. Makes this process a subreaper, because what it launches becomes its children.

    Candidates run in `sandbox`. With `fork` torch is imported here, and the forkserver is a copy of this process, which
    must have nothing to hide; else it is a program of its own that imports it, and in whose environment is what
    says where modules are `compiled`. Raises OSError if the kernel refuses.
    """

    def __init__(
        self, sandbox: Sandbox | None = None, *, fork: bool = False, compiled: Mapping[str, str] | None = None
    ) -> None:
        become_subreaper()
        self.sandbox = sandbox or Sandbox()
        self._compiled = compiled or {}
        self._lock = Lock()
        self._start(_fork if fork else self._spawn)

    @property
    def pid(self) -> int:
        """The forkserver's process number."""
        return self._forkserver.pid

    def serve(self, entry: str, descriptor: int) -> int:
        """Starts a process of the harness's own; gives its number. It becomes a child of this process.

        `entry` names the function that it calls, as `module:function`, with a connection over the descriptor.
        """
        return self._ask({"entry": entry}, [descriptor])

    def launch(self, start: Start, under: Sequence[str] = ()) -> int:
        """Starts a candidate; gives its process number, which is a child of this process.

        It is inside its sandbox before anything of a solution runs. `under` is a program that is to start it, with its
        arguments; such a candidate has to import torch itself.
        """
        descriptors = [*start.descriptors, *start.shared.values()]
        request: dict[str, Any] = {
            "folder": str(start.folder), "policy": start.policy.to_json(), "shared": list(start.shared),
        }
        if under:
            return self._launch_under(under, request, start.environment, descriptors)
        return self._ask({**request, "environment": dict(start.environment)}, descriptors)

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        message = json.dumps({**request, "parent": os.getpid()}).encode()
        with self._lock:
            if not self._forkserver.is_running():
                self._start(self._spawn)
            socket.send_fds(self._requests, [message], list(descriptors))
            return int(json.loads(self._requests.recv(1 << 12))["pid"])

    def _launch_under(
        self, under: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str],
        descriptors: Sequence[int],
    ) -> int:
        """The tool adds to the environment what its part inside the candidate needs, so the order doesn't hold one.

        Each tensor gets a block of its own from CUDA, whose ends the tool knows: torch's allocator rounds sizes up.
        """
        log = descriptors[2]
        own = {NVML_CHECK: "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        module = "inlinebench.process.candidate_main"
        command = [*under, sys.executable, "-m", module, json.dumps(request), *map(str, descriptors)]
        # Reaped by whoever asks for its status: nothing else is done with this object.
        process = subprocess.Popen(
            command, pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**environment, **own}, cwd=request["folder"],
        )
        process.returncode = 0
        return process.pid

    def close(self) -> None:
        """Ends the forkserver; candidates that run go on."""
        self._requests.close()
        self._forkserver.end()

    def _start(self, how: Callable[[socket.socket], int]) -> None:
        # One order, one message: the kind of socket that keeps their borders.
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forkserver = Child(how(theirs))
        theirs.close()

    def _spawn(self, requests: socket.socket) -> int:
        """Starts a forkserver as a program; gives its process number."""
        path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.process.forkserver", str(requests.fileno())],
            pass_fds=[requests.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            env={**clean_environment(os.environ), "PYTHONPATH": path, **self._compiled},
        )
        process.returncode = 0  # nothing else is done with this object
        return process.pid


def _fork(requests: socket.socket) -> int:
    """Makes a copy of this process a forkserver; gives its process number."""
    gc.disable()  # of a million objects none is garbage; to look for some is a tenth of the time
    import torch  # noqa: F401 - for this process and for those that are made of it

    gc.freeze()
    gc.enable()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        close_all_but([requests.fileno()])
        from inlinebench.process import forkserver

        forkserver.run(requests)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and the log is to say why
        traceback.print_exc()
    finally:
        os._exit(status)
