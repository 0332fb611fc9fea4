"""Asks a candidate on the CPU which kernel it is in, before it is killed for taking too long.

The emulation's runtime answers a signal with a line in the candidate's log (`harness/cuda_on_cpu/runtime/faults.cpp`).
What it says is shown, and decides nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inlinebench.wire.processes import descendants

QUESTION = signal.SIGUSR2
ANSWER = "inlinebench: still running in kernel "
PATIENCE_S = 3.0
"""How long to wait for the answer, for which addr2line reads the library's table of lines."""


def running_kernel(root: int, log: Callable[[], str]) -> str:
    """Returns the kernel, block, thread and line that a process below `root` is in, or "" if none says so.

    Args:
        root: the process whose descendants are asked.
        log: returns the end of what they print.
    """
    asked = [pid for pid in descendants(root) if _answers(pid)]
    for pid in asked:
        for thread in _threads(pid):
            # The runtime answers in the thread that runs the kernel, and only once.
            ctypes.CDLL(None).tgkill(pid, thread, QUESTION)
    deadline = time.monotonic() + PATIENCE_S
    while asked and time.monotonic() < deadline:
        found = [line for line in log().splitlines() if line.startswith(ANSWER)]
        if found:
            return found[-1].removeprefix("inlinebench: ")
        time.sleep(0.02)
    return ""


def _answers(pid: int) -> bool:
    """Whether a process has a handler for the question. It would kill any other."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (QUESTION - 1) & 1)


def _threads(pid: int) -> Iterator[int]:
    try:
        yield from map(int, os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return
