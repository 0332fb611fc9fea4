"""What cheats share that mean to run while the judge has stopped them: they set the shared inputs to zero meanwhile.

Then the reference would give zeros, if it read the shared inputs, and an answer of zeros would be right. Means that the
sandbox refuses are passed over without a word, so that such a cheat only fails if its answers do.
"""

import ctypes
import signal
import struct
import threading
from pathlib import Path

import torch

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


def keep_at_zero(values: torch.Tensor) -> None:
    """Waits until the judge draws the next inputs, and sets them to zero from then on."""
    known = values[0].item()
    while values[0].item() == known:
        pass
    while True:
        values.zero_()


def in_a_thread(values: torch.Tensor) -> None:
    """Starts a thread that keeps the values at zero."""
    threading.Thread(target=keep_at_zero, args=(values,), daemon=True).start()


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
