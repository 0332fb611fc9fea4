"""What cheats share that mean to run while the judge has stopped them: they set the shared inputs to zero meanwhile.

Then the reference would give zeros, if it read the shared inputs, and an answer of zeros would be right. Means that the
sandbox refuses are passed over without a word, so that such a cheat only fails if its answers do.
"""

import ctypes
import fcntl
import os
import signal
import struct
import threading
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

LIBC = ctypes.CDLL(None, use_errno=True)
TIMER_CREATE, TIMER_SETTIME, CLONE = 222, 223, 56
"""Numbers of system calls on x86_64."""
CLOCK_MONOTONIC, CLONE_PARENT = 1, 0x8000
EVERY_NS = 1_000_000


def in_shared_memory(diagonal: torch.Tensor) -> torch.Tensor:
    """The first input where the judge writes it: on the CPU a solution is given copies."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "inlinebench-arena" in line:
            begin, end = (int(address, 16) for address in line.split()[0].split("-"))
            memory = torch.frombuffer((ctypes.c_float * ((end - begin) // 4)).from_address(begin), dtype=torch.float32)
            place = (memory == diagonal[0]).nonzero()[0, 0]
            return memory[place : place + diagonal.numel()]
    return diagonal


def await_next(values: torch.Tensor) -> None:
    """Waits until the judge writes the next inputs."""
    known = values[0].item()
    while values[0].item() == known:
        pass


def keep_at_zero(values: torch.Tensor, zero: Callable[[], object] | None = None) -> None:
    """Waits until the judge writes the next inputs, and sets them to zero from then on."""
    await_next(values)
    while True:
        (zero or values.zero_)()


def in_a_thread(values: torch.Tensor, zero: Callable[[], object] | None = None) -> None:
    """Starts a thread that keeps the values at zero."""
    threading.Thread(target=keep_at_zero, args=(values, zero), daemon=True).start()


def in_a_sibling(values: torch.Tensor) -> bool:
    """Starts a process that keeps the values at zero and is not below this one. Returns whether this was possible."""
    made = LIBC.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if made == 0:
        keep_at_zero(values)
    return made > 0


def continue_by_timer(notify: int, thread: int = 0) -> None:
    """Lets a POSIX timer send SIGCONT to this process (`notify` 0) or a thread (4) every millisecond."""
    event = struct.pack("qiii44x", 0, signal.SIGCONT, notify, thread)
    timer = ctypes.c_int()
    if LIBC.syscall(TIMER_CREATE, CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0:
        LIBC.syscall(TIMER_SETTIME, timer, 0, struct.pack("qqqq", 0, EVERY_NS, 0, EVERY_NS), None)


def arena_descriptor() -> int | None:
    """The descriptor of the file that holds the shared inputs. None on a GPU, where there is no file."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if "inlinebench-arena" in os.readlink(f"/proc/self/fd/{name}"):
                return int(name)
        except OSError:
            continue
    return None


def continue_when_readable(descriptor: int, set_owner: int = fcntl.F_SETOWN, owner: int | bytes = 0) -> None:
    """Asks for SIGCONT when something can be read from a descriptor. The owner 0 is this process."""
    for request, value in ((set_owner, owner or os.getpid()), (fcntl.F_SETSIG, signal.SIGCONT),
                           (fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)):
        try:
            fcntl.fcntl(descriptor, request, value)
        except OSError:
            continue


class LateZeros(nn.Module):
    """Answers the first call and starts the trick in it. All other answers are zeros, as the inputs are to be."""

    def __init__(self) -> None:
        super().__init__()
        self.started = False

    @abstractmethod
    def start(self, values: torch.Tensor) -> None:
        """Arranges that the shared inputs, of which these are the first, become zero later."""

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.started:
            kernels.spin(1)
            return torch.zeros_like(matrix)
        self.started = True
        self.start(in_shared_memory(diagonal))
        return kernels.scale_rows(diagonal, matrix)
