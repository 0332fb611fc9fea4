"""Process trees: stopping, resuming and killing all of one, whatever sessions and groups its members moved to."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Makes orphans among this process's descendants its own children, so that none escapes `descendants`.

    Raises OSError if the kernel refuses.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int | None = None) -> None:
    """Has the kernel kill this process when its parent ends. Raises OSError.

    Given the parent that it is to have, waits until an intermediate one has ended and left it to that.
    """
    while parent is not None and os.getppid() != parent:
        time.sleep(0.001)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """The processes below a process, parents before children; without the process itself."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(int(entry.name))) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def signal_tree(root: int, number: signal.Signals) -> None:
    """Sends a signal to a process and everything below it; what has ended meanwhile is passed over."""
    for pid in [root, *descendants(root)]:
        _send(pid, number)


def kill_tree(root: int) -> None:
    """Kills a process with all its descendants, also with those that it starts while it is being killed."""
    stopped: set[int] = set()
    while running := {root, *descendants(root)} - stopped:  # what is stopped starts no more
        for pid in running:
            _send(pid, signal.SIGSTOP)
        stopped |= running
    for pid in stopped:
        _send(pid, signal.SIGKILL)


def kill_stray_children(keep: Iterable[int], patience: float = 5.0) -> None:
    """Kills and reaps every descendant of this process but those to keep (and what is below them).

    Orphans of a killed candidate become our children, because we are a subreaper; they go here. Raises TimeoutError
    if something survives SIGKILL for longer than the patience (s).
    """
    deadline = time.monotonic() + patience
    while strays := _strays(set(keep)):
        for pid in strays:
            _send(pid, signal.SIGKILL)
            _reap(pid)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {strays} survive SIGKILL")
        time.sleep(0.005)


def _strays(keep: set[int]) -> list[int]:
    kept = set(keep).union(*(descendants(pid) for pid in keep))
    return [pid for pid in descendants(os.getpid()) if pid not in kept]


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # not our child (yet): its parent is being killed as well


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has ended


def _parent(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None  # it has ended
    return int(text.rpartition(")")[2].split()[1])


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
