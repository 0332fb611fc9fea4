"""Starts processes through a forkserver, which it restarts if necessary."""

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
from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, Sandbox, clean_environment
from inlinebench.wire.own_python import own_python
from inlinebench.wire.processes import Child, become_subreaper, close_all_but


@dataclass(frozen=True)
class Start:
    """How to start a candidate."""

    folder: Path
    """Its working folder."""
    environment: Mapping[str, str]
    """Its whole environment."""
    policy: Policy
    """The policy of its sandbox."""
    channel: int
    """Its end of the channel, a descriptor of a socket."""
    log: int
    """The descriptor of the file that it writes its output to."""
    page: int | None
    """The descriptor of its flag page, if it has one."""


class Launcher:
    """Starts candidates and the harness's own processes. Thread-safe.

    It makes this process a subreaper, so that the processes become its children. Raises OSError if the kernel refuses.

    Args:
        sandbox: the sandbox of candidates.
        fork: whether to import torch here and fork the forkserver from this process. A fork inherits its parent's
            memory, so this process must not hold any secret yet. Otherwise the forkserver is a new program that imports
            torch itself.
    """

    def __init__(self, sandbox: Sandbox | None = None, *, fork: bool = False) -> None:
        become_subreaper()
        self.sandbox = sandbox or Sandbox()
        self._lock = Lock()
        self._start(_fork if fork else self._spawn)

    @property
    def pid(self) -> int:
        """The forkserver's process id."""
        return self._forkserver.pid

    def serve(self, entry: str, descriptor: int) -> int:
        """Starts a process that runs a function of the harness. Returns its id. It becomes a child of this process.

        `entry` names the function as `module:function`. It is called with a connection over the descriptor.
        """
        return self._ask({"entry": entry}, [descriptor])

    def launch(self, start: Start, under: Sequence[str] = ()) -> int:
        """Starts a candidate below a supervisor, a child of this process, and returns the supervisor's process id.

        The candidate enters its sandbox before any code of a solution runs. `under` is the command of a tool that
        starts it; such a candidate imports torch itself, which takes seconds.
        """
        descriptors = [start.channel, start.log, *([] if start.page is None else [start.page])]
        request: dict[str, Any] = {"folder": str(start.folder), "policy": start.policy.to_json()}
        if under:
            return self._launch_under(under, request, start.environment, descriptors)
        return self._ask({**request, "environment": dict(start.environment)}, descriptors)

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Returns the id of the process that the forkserver starts.

        Raises OSError if the forkserver is killed meanwhile. The request is not repeated, because the process may have
        started, and two of them would share a channel.
        """
        message = json.dumps({**request, "parent": os.getpid()}).encode()
        with self._lock:
            if not self._forkserver.is_running():
                self._start(self._spawn)
            try:
                socket.send_fds(self._requests, [message], list(descriptors))
                return int(json.loads(self._requests.recv(1 << 12))["pid"])
            except (OSError, ValueError) as error:  # an empty reply if it had the request
                self._forkserver.end()
                raise ChildProcessError("the forkserver was killed") from error

    def _launch_under(
        self, under: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str],
        descriptors: Sequence[int],
    ) -> int:
        """Starts a candidate under a tool and returns the process id of its supervisor.

        The request contains no environment, because the tool adds variables to it. PyTorch's caching allocator is off,
        so that each tensor is a separate CUDA allocation whose bounds the tool knows.
        """
        log = descriptors[1]
        own = {NVML_CHECK: "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        module = "inlinebench.process.candidate_main"
        supervised = supervisor.command(Policy.from_json(request["policy"]))
        command = [*supervised, *under, sys.executable, "-m", module, json.dumps(request), *map(str, descriptors)]
        # CandidateProcess waits for the process, so this object must not.
        process = subprocess.Popen(
            command, pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**environment, **own_python(), **own}, cwd=request["folder"],
        )
        process.returncode = 0
        return process.pid

    def close(self) -> None:
        """Ends the forkserver. Running candidates continue."""
        self._requests.close()
        self._forkserver.end()

    def _start(self, how: Callable[[socket.socket], int]) -> None:
        # SOCK_SEQPACKET keeps message boundaries, so each request is one message.
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forkserver = Child(how(theirs))
        theirs.close()

    def _spawn(self, requests: socket.socket) -> int:
        """Starts a forkserver as a new program and returns its process id."""
        process = subprocess.Popen(
            [sys.executable, "-m", "inlinebench.process.forkserver", str(requests.fileno())],
            pass_fds=[requests.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            env={**clean_environment(os.environ), **own_python()},
        )
        process.returncode = 0  # `Child` waits for the process, so this object must not
        return process.pid


def _fork(requests: socket.socket) -> int:
    """Forks a forkserver from this process and returns its process id."""
    gc.disable()  # the import creates a million objects and no garbage, so collections would only take 10 % of the time
    import torch  # noqa: F401 - for this process and its forks

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
    except BaseException:  # noqa: BLE001 - the process ends here, and the log must have the reason
        traceback.print_exc()
    finally:
        os._exit(status)
