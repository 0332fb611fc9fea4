"""Process trees: stopping, resuming and killing all of one, whatever sessions and groups its members moved to."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

STOP_PATIENCE_S = 1.0
STANDARD_ERROR = 2
STAT_BYTES = 4096
"""More than a line of /proc/PID/stat has."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """A child of this process, by its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._over = False

    def is_running(self) -> bool:
        """Whether it hasn't ended."""
        self._reap(os.WNOHANG)
        return not self._over

    def end(self) -> None:
        """Kills it, and waits for that."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)

    def _reap(self, options: int) -> None:
        if not self._over:
            try:
                self._over = os.waitpid(self.pid, options)[0] != 0
            except ChildProcessError:  # somebody else has waited for it
                self._over = True


def become_subreaper() -> None:
    """Makes orphans among this process's descendants its own children, so that none escapes `descendants`.

    Raises OSError if the kernel refuses.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def await_parent(parent: int) -> None:
    """Waits until an intermediate parent has ended and left this process to that one, a subreaper.

    To be called while other processes can still be seen. Raises ProcessLookupError if that one has ended as well.
    """
    while os.getppid() != parent:
        os.kill(parent, 0)
        time.sleep(0.001)


def die_with_parent(parent: int | None = None) -> None:
    """Has the kernel kill this process when its parent ends. Raises OSError.

    Raises ProcessLookupError if the parent that it is to have has ended already: then nothing would.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        raise ProcessLookupError(f"process {parent}, this one's parent, has ended")


def forks_so_far() -> int | None:
    """How many processes and threads this machine has ever started; None where the kernel doesn't say."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/stat").read_bytes().splitlines():
            if line.startswith(b"processes "):
                return int(line.split()[1])
    return None


def _highest_number() -> int:
    """The end of the numbers that processes get; 0 where the kernel doesn't say."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    return 0


def _may_be_below(root: int, forks_before: int | None) -> int:
    """The number above which all processes below the root lie: the root's own, or 0 if one may have a lower number.

    Numbers ascend, one for each process and thread, and begin anew behind the highest. So none has begun anew while
    fewer were started than there are numbers above the root's. `forks_before` is the count from before the root was,
    which alone makes it grow: where it doesn't, it says nothing.
    """
    now = forks_so_far()
    if now is None or forks_before is None or now <= forks_before:
        return 0
    return root if now - forks_before < _highest_number() - root else 0


def descendants(root: int, *, unburied: bool = False, forks_before: int | None = None) -> list[int]:
    """The processes below a process, parents before children; without the process itself.

    Those that are dead, but that nobody waited for, only if `unburied`. With the count of forks from before the root
    was, only younger processes are looked at, as long as their numbers tell: a machine with many cores has a thousand
    others, and to look at all of them takes 10 ms.
    """
    above = _may_be_below(root, forks_before)
    children: dict[int, list[int]] = {}
    for pid in filter(lambda pid: pid > above, _all_processes()):
        alive, parent = _look_at(pid)
        if alive or unburied:
            children.setdefault(parent, []).append(pid)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def signal_tree(root: int, number: signal.Signals) -> None:
    """Sends a signal to a process and everything below it; what has ended meanwhile is passed over.

    If the process leads a group, the whole group gets it first, at once: inside the sandbox nothing can leave that.
    """
    _send_to_group(root, number)
    for pid in [root, *descendants(root)]:
        _send(pid, number)


def stop_tree(root: int, forks_before: int | None = None) -> list[int]:
    """Stops a process and everything below it, also what is started while that is being done; gives all of these.

    `forks_before` is as for `descendants`. Raises TimeoutError if something goes on for longer than a second.
    """
    deadline = time.monotonic() + STOP_PATIENCE_S
    _send_to_group(root, signal.SIGSTOP)
    while True:
        tree = [root, *descendants(root, forks_before=forks_before)]
        running = [pid for pid in tree if not _is_stopped(pid)]
        if not running:
            return tree
        for pid in running:
            _send(pid, signal.SIGSTOP)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {running} can't be stopped")


def resume_tree(tree: Iterable[int]) -> None:
    """Has processes go on that `stop_tree` stopped: what stands still starts no others, so there is nothing to look
    for."""
    for pid in tree:
        _send(pid, signal.SIGCONT)


def kill_tree(root: int) -> set[int]:
    """Kills a process with all its descendants, also with those that start others while they are being killed; gives
    these descendants.

    The root is stopped first and killed last. As long as it is there, whatever its descendants orphan stays below it
    (a candidate is a subreaper), so that looking again finds it. A fork bomb is slower than that.
    """
    signal_tree(root, signal.SIGSTOP)
    found: set[int] = set()
    while below := descendants(root):
        found.update(below)
        for pid in reversed(below):  # children before their parents, whose end would hand them to somebody else
            _send(pid, signal.SIGKILL)
    _send(root, signal.SIGKILL)
    return found


def bury(pids: Iterable[int], patience: float = 5.0) -> None:
    """Waits, for so long (s) at most, for those of these processes, which were killed, that have become children of
    ours: a subreaper's.

    Where nobody waits for them they stay in the table of processes; not everything that runs as the first process does.
    """
    deadline = time.monotonic() + patience
    left = [pid for pid in pids if _is_unburied(pid)]
    while left and time.monotonic() < deadline:
        time.sleep(0.002)
        left = [pid for pid in left if _is_unburied(pid)]


def _is_unburied(pid: int) -> bool:
    """Whether it is a child of ours that hasn't ended yet; if it has, this buries it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


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
    kept = set(keep).union(*(descendants(pid, unburied=True) for pid in keep))
    return [pid for pid in descendants(os.getpid(), unburied=True) if pid not in kept]


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


def _send_to_group(leader: int, number: signal.Signals) -> None:
    try:
        if os.getpgid(leader) == leader:
            os.killpg(leader, number)
    except ProcessLookupError:
        return  # it has ended


def _all_processes() -> Iterator[int]:
    """In ascending order: a parent mostly comes before its children, and one that starts now comes at the end."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _look_at(pid: int) -> tuple[bool, int]:
    """Whether a process lives, and its parent (0 once it is gone).

    A process whose first thread has ended looks like a dead one, but lives on while it has others.
    """
    state, parent, threads = _stat(pid)
    return state not in "ZX" or threads > 1, parent


def _is_stopped(pid: int) -> bool:
    """Whether a process does nothing more: stopped, or dead."""
    state, _, threads = _stat(pid)
    return state in "Tt" or (state in "ZX" and threads <= 1)


def _stat(pid: int) -> tuple[str, int, int]:
    """A process's state, parent and number of threads; dead and without either once it is gone.

    Read without Python's file objects, which take six times as long: all processes are looked at twice in each call.
    """
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return "X", 0, 0
    try:
        fields = os.read(file, STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return "X", 0, 0
    finally:
        os.close(file)
    return fields[0].decode("ascii"), int(fields[1]), int(fields[17])


def close_all_but(kept: Collection[int]) -> None:
    """Closes every other descriptor of this process that lies above standard error."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > STANDARD_ERROR and descriptor not in kept:
            with suppress(OSError):  # the folder itself was open while it was listed
                os.close(descriptor)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
