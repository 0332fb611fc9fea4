"""Starts processes by forking one that has imported torch already: candidates, and those that an entry point names.

Each is forked twice, so that it becomes a child of the judge (a subreaper), which then learns how it ended. Nothing of
a problem or a solution ever runs in this process, CUDA is not started in it, and it has never had an environment but a
clean one: what a process is started with stays readable in every process that is forked from it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch  # noqa: F401 - what all of it is for

from inlinebench.candidate import NVML_CHECK
from inlinebench.sandbox.policy import Policy, enter
from inlinebench.wire import bytecode
from inlinebench.wire.channel import Channel
from inlinebench.wire.processes import await_parent, become_subreaper, die_with_parent

LONGEST_REQUEST = 1 << 17
MOST_DESCRIPTORS = 8
PID_DIGITS = 20


def serve(requests: socket.socket) -> None:
    """Forks a process for each order until the other side closes; answers with its number."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, LONGEST_REQUEST, MOST_DESCRIPTORS)
        if not data:
            return
        request = json.loads(data)
        if "entry" not in request:
            prepare_candidates()
        known, told = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.close(known)
            _fork_again(requests, told, request, descriptors)
        os.close(told)
        pid = int(os.read(known, PID_DIGITS))
        os.waitpid(middle, 0)  # from here on it is the judge's child, and the judge may kill it and wait for it
        requests.send(json.dumps({"pid": pid}).encode())
        for descriptor in (known, *descriptors):
            os.close(descriptor)
        prepare_candidates()  # while the first process, a probe, is at work


def prepare_candidates() -> None:
    """Imports what candidates are made of, once; with torch's extension loader that takes half a second on some
    machines.

    That loader asks whether there is a GPU. Asked through NVML, that leaves CUDA untouched, and only then can the
    processes forked from here start it.
    """
    if "inlinebench.candidate.candidate" in sys.modules:
        return
    os.environ[NVML_CHECK] = "1"
    importlib.import_module("inlinebench.candidate.candidate")
    _settle()


def _settle() -> None:
    """What is loaded now stays, so that candidates, who collect after every call, have only their own to look through.
    """
    gc.collect()
    gc.freeze()


def _fork_again(requests: socket.socket, told: int, request: dict[str, Any], descriptors: list[int]) -> None:
    pid = os.fork()
    if pid:
        os.write(told, str(pid).encode())
        os._exit(0)
    os.close(told)
    status = 1
    try:
        requests.close()
        if "entry" in request:
            _enter(request, *descriptors)
        else:
            os.environ.clear()
            os.environ.update(request["environment"])
            become_candidate(request, descriptors)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the process ends here, and the log is to say why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


def _enter(request: dict[str, Any], descriptor: int) -> None:
    """Calls the function that the request names as `module:function`, with the connection to the judge."""
    await_parent(request["parent"])
    die_with_parent(request["parent"])
    module, _, function = request["entry"].partition(":")
    getattr(importlib.import_module(module), function)(Connection(descriptor))


def become_candidate(request: dict[str, Any], descriptors: list[int]) -> None:
    """Serves the judge as one candidate, until it closes the channel.

    `descriptors` are: frames in, frames out, log, and those that the order names as `shared`.
    """
    read_fd, write_fd, log_fd, *shared = descriptors
    if os.getsid(0) != os.getpid():
        os.setsid()
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)
    bytecode.leave()
    os.chdir(request["folder"])
    parent = request.get("parent")
    if parent is not None:
        await_parent(parent)
    policy = Policy.from_json(request["policy"])
    enter(policy)
    die_with_parent(parent)
    become_subreaper()  # what its children orphan stays below it, where it can be killed
    from inlinebench.candidate.candidate import Candidate
    from inlinebench.candidate.files import Files

    given = dict(zip(request["shared"], shared, strict=True))
    channel, files = Channel(read_fd, write_fd), Files(Path(request["folder"]))
    Candidate(channel, policy, files, given.get("page"), given.get("arena")).serve()


def run(requests: socket.socket) -> None:
    """What a forkserver does as long as it lives."""
    die_with_parent()
    # NumPy's idle threads are no danger: neither they nor this one holds a lock while it waits for an order.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
    _settle()
    serve(requests)


if __name__ == "__main__":
    run(socket.socket(fileno=int(sys.argv[1])))
