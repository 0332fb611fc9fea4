"""Starts processes by forking one that has imported torch already: candidates, and rehearsals of problems.

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

from inlinebench.candidate import CANDIDATE, NVML_CHECK, REHEARSAL
from inlinebench.sandbox.policy import Policy, enter
from inlinebench.wire import bytecode
from inlinebench.wire.channel import Channel
from inlinebench.wire.processes import await_parent, become_subreaper, die_with_parent

LONGEST_ORDER = 1 << 17
MOST_DESCRIPTORS = 8
PID_DIGITS = 20


def serve(orders: socket.socket) -> None:
    """Forks a process for each order until the other side closes; answers with its number."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(orders, LONGEST_ORDER, MOST_DESCRIPTORS)
        if not data:
            return
        order = json.loads(data)
        if order["role"] == CANDIDATE:
            prepare_candidates()
        known, told = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.close(known)
            _fork_again(orders, told, order, descriptors)
        os.close(told)
        pid = int(os.read(known, PID_DIGITS))
        os.waitpid(middle, 0)  # from here on it is the judge's child, and the judge may kill it and wait for it
        orders.send(json.dumps({"pid": pid}).encode())
        for descriptor in (known, *descriptors):
            os.close(descriptor)
        prepare_candidates()  # when the rehearsal, which comes first, is at work


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


def _fork_again(orders: socket.socket, told: int, order: dict[str, Any], descriptors: list[int]) -> None:
    pid = os.fork()
    if pid:
        os.write(told, str(pid).encode())
        os._exit(0)
    os.close(told)
    status = 1
    try:
        orders.close()
        if order["role"] == REHEARSAL:
            _become_rehearsal(order, *descriptors)
        else:
            os.environ.clear()
            os.environ.update(order["environment"])
            become_candidate(order, descriptors)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the process ends here, and the log is to say why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


def _become_rehearsal(order: dict[str, Any], descriptor: int) -> None:
    """Serves the judge over that descriptor until it closes it."""
    await_parent(order["parent"])
    die_with_parent(order["parent"])
    from inlinebench.problem.probe_main import serve_judge  # not before there is to be one

    serve_judge(Connection(descriptor))


def become_candidate(order: dict[str, Any], descriptors: list[int]) -> None:
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
    os.chdir(order["folder"])
    parent = order.get("parent")
    if parent is not None:
        await_parent(parent)
    policy = Policy.from_json(order["policy"])
    enter(policy)
    die_with_parent(parent)
    become_subreaper()  # what its children orphan stays below it, where it can be killed
    from inlinebench.candidate.candidate import Candidate
    from inlinebench.candidate.files import Files

    given = dict(zip(order["shared"], shared, strict=True))
    channel, files = Channel(read_fd, write_fd), Files(Path(order["folder"]))
    Candidate(channel, policy, files, given.get("page"), given.get("arena")).serve()


def run(orders: socket.socket) -> None:
    """What a forkserver does as long as it lives."""
    die_with_parent()
    # NumPy's idle threads are no danger: neither they nor this one holds a lock while it waits for an order.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
    _settle()
    serve(orders)


if __name__ == "__main__":
    run(socket.socket(fileno=int(sys.argv[1])))
