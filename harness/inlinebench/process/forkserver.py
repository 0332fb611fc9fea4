"""A forkserver: starts candidates and the probe by forking a process that has already imported torch.

Each process is forked twice, so that it becomes a child of the judge (a subreaper), which can then read its exit
status. Between the judge and a candidate is the supervisor of the candidate's sandbox. The forkserver runs no code of a
problem or a solution, does not start CUDA, and has always had a clean environment: a process's initial environment
stays readable in all of its forks.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch  # noqa: F401 - what all of it is for

from inlinebench.candidate import NVML_CHECK
from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, enter
from inlinebench.wire.channel import Channel
from inlinebench.wire.processes import await_parent, close_all_but, die_with_parent, fork

LONGEST_REQUEST = 1 << 17
"""Bytes."""
MOST_DESCRIPTORS = 8
PID_DIGITS = 20


def serve(requests: socket.socket) -> None:
    """Forks a process for each request and replies with its id, until the other side closes the socket."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, MOST_DESCRIPTORS)
        if not data:
            return
        request = json.loads(data)
        if "entry" not in request:
            prepare_candidates()
        read_end, write_end = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.close(read_end)
            requests.close()
            _start(write_end, request, descriptors)
        os.close(write_end)
        pid = int(os.read(read_end, PID_DIGITS))
        os.waitpid(middle, 0)  # now the process is a child of the judge, which may kill it and wait for it
        requests.send(json.dumps({"pid": pid}).encode())
        for descriptor in (read_end, *descriptors):
            os.close(descriptor)
        prepare_candidates()  # while the first process, the probe, runs


def prepare_candidates() -> None:
    """Imports the modules of a candidate, once. This takes half a second on some machines.

    PyTorch's extension loader, which is among them, checks for a GPU. The check must use NVML, because CUDA cannot
    start in a process that was forked after CUDA was used.
    """
    if "inlinebench.candidate.candidate" in sys.modules:
        return
    os.environ[NVML_CHECK] = "1"
    importlib.import_module("inlinebench.candidate.candidate")
    _end_nvml()
    _settle()


def _end_nvml() -> None:
    """Ends NVML if the check has started it. A fork of a process that uses NVML cannot start it, and there PyTorch's
    allocator fails an assertion instead of reporting a lack of memory."""
    with suppress(OSError):  # without a driver there is no library
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        while nvml.nvmlShutdown() == 0:  # once for each start
            pass


def _settle() -> None:
    """Excludes everything loaded so far from garbage collection, because candidates collect after every call."""
    gc.collect()
    gc.freeze()


def _start(write_end: int, request: dict[str, Any], descriptors: list[int]) -> None:
    """Starts the process that is asked for, writes its id, and ends."""
    if "entry" in request:
        pid = fork(lambda: _enter(request, *descriptors))
    else:
        policy = Policy.from_json(request["policy"])
        pid = supervisor.start(policy, lambda inside: _become_candidate(request, inside, descriptors),
                               parent=request["parent"])
    os.write(write_end, str(pid).encode())
    os._exit(0)


def _enter(request: dict[str, Any], descriptor: int) -> int:
    """Calls the function that the request names (`module:function`) with a connection to the judge."""
    await_parent(request["parent"])
    die_with_parent(request["parent"])
    module, _, function = request["entry"].partition(":")
    getattr(importlib.import_module(module), function)(Connection(descriptor))
    return 0


def _become_candidate(request: dict[str, Any], policy: Policy, descriptors: list[int]) -> int:
    close_all_but(descriptors)
    os.environ.clear()
    os.environ.update(request["environment"])
    log = descriptors[1]
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(request["folder"])
    enter(policy)
    serve_judge(request, policy, descriptors)
    return 0


def serve_judge(request: dict[str, Any], policy: Policy, descriptors: list[int]) -> None:
    """Serves the judge as a candidate until it closes the channel.

    `descriptors` are its end of the channel, the log, and on a GPU the flag page.
    """
    channel_fd, _, *page = descriptors
    from inlinebench.candidate.candidate import Candidate
    from inlinebench.candidate.files import Files

    channel = Channel(socket.socket(fileno=channel_fd), takes_descriptors=True)
    Candidate(channel, policy, Files(Path(request["folder"])), page[0] if page else None).serve()


def run(requests: socket.socket) -> None:
    """Runs a forkserver."""
    die_with_parent()
    # NumPy's idle threads are harmless: no thread holds a lock while the forkserver waits for a request.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
    _settle()
    serve(requests)


if __name__ == "__main__":
    run(socket.socket(fileno=int(sys.argv[1])))
