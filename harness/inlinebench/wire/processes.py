"""Stops, resumes and kills process trees, including processes that moved to other sessions or process groups."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

STOP_PATIENCE_S = 10.0
"""How long a process may take to stop, in seconds. A signal waits until the process gets a processor."""
SETTLING_NS = 1_000_000
"""The CPU time that a stopped process may still use where the kernel does not say when its threads left their
processors."""
STOP_POLL_S = 5e-5
CPU_CLOCK = 2
"""The kind of a process's clock that counts its CPU time in ns."""
STANDARD_ERROR = 2
STAT_BYTES = 4096
"""More than the length of /proc/PID/stat."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """A child of this process, by PID."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._over = False

    def is_running(self) -> bool:
        """Whether the child has not ended."""
        self._reap(os.WNOHANG)
        return not self._over

    def end(self) -> None:
        """Kills the child and waits for its end."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)

    def _reap(self, options: int) -> None:
        if not self._over:
            try:
                self._over = os.waitpid(self.pid, options)[0] != 0
            except ChildProcessError:  # something else in this process has waited for it
                self._over = True


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process, so that none escapes `descendants`.

    Raises OSError if the kernel refuses.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def fork(act: Callable[[], int]) -> int:
    """Forks and returns the child's process id. The child ends with the status that `act` returns, or with 1 and a
    traceback if it raises."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = act()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the process ends here, and the log must have the reason
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


def _parent_id() -> int:
    """Returns the id of this process's parent as /proc shows it. `os.getppid` shows no parent outside of a PID
    namespace."""
    return _stat("self")[1]


def await_parent(parent: int) -> None:
    """Waits until an intermediate parent has ended and `parent`, a subreaper, has become this process's parent.

    Call it while /proc still shows other processes. Raises ProcessLookupError if `parent` has ended as well.
    """
    while _parent_id() != parent:
        if not os.path.exists(f"/proc/{parent}"):
            raise ProcessLookupError(f"process {parent}, which this process waits for, has ended")
        time.sleep(0.001)


def die_with_parent(parent: int | None = None) -> None:
    """Asks the kernel to kill this process when its parent ends. Raises OSError.

    Raises ProcessLookupError if `parent` is given and is no longer this process's parent, because then its end would
    not be noticed.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and _parent_id() != parent:
        raise ProcessLookupError(f"process {parent}, the parent of this process, has ended")


def forks_so_far() -> int | None:
    """Returns how many processes and threads this machine has started since boot, or None if it is unknown."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/stat").read_bytes().splitlines():
            if line.startswith(b"processes "):
                return int(line.split()[1])
    return None


def _highest_pid() -> int:
    """Returns the kernel's upper limit of PIDs, or 0 if it does not report one."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    return 0


def _may_be_below(root: int, forks_before: int | None) -> int:
    """Returns a PID that all descendants of the root exceed: the root's own, or 0 if one may have a lower PID.

    PIDs ascend with each new process and thread, and wrap around at the limit. No PID has wrapped around while fewer
    processes were started than there are PIDs above the root's. `forks_before` is the count before the root was
    started; a count that has not grown since is wrong and not used.
    """
    now = forks_so_far()
    if now is None or forks_before is None or now <= forks_before:
        return 0
    return root if now - forks_before < _highest_pid() - root else 0


def descendants(root: int, *, unreaped: bool = False, forks_before: int | None = None) -> list[int]:
    """Returns the descendants of a process, parents before children.

    Zombies are included only if `unreaped`. With `forks_before`, the value of `forks_so_far()` before the root was
    started, only younger processes are examined as long as PIDs have not wrapped around: a machine with many cores has
    a thousand other processes, and examining them all takes 10 ms.
    """
    above = _may_be_below(root, forks_before)
    children: dict[int, list[int]] = {}
    for pid in filter(lambda pid: pid > above, _all_processes()):
        alive, parent = _examine(pid)
        if alive or unreaped:
            children.setdefault(parent, []).append(pid)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def signal_tree(root: int, number: signal.Signals) -> None:
    """Sends a signal to a process and its descendants. Skips processes that have ended.

    If a process leads a process group, the whole group gets the signal at once first: inside the sandbox no process can
    leave the group.
    """
    _send_to_group(root, number)
    for pid in [root, *descendants(root)]:
        _send_to_group(pid, number)
        _send(pid, number)


class Stopped:
    """Processes that `stop_tree` stopped. Stopped processes start no others, so the list is complete.

    Any SIGCONT undoes a stop, also one that was ordered before it, such as a timer's. So their CPU times, which the
    kernel counts in ns, say whether they have stayed stopped: a process that ran has a larger one.
    """

    def __init__(self, pids: Sequence[int] = ()) -> None:
        self._used = {pid: _most_cpu_ns(pid) for pid in pids}

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes."""
        return tuple(self._used)

    def ran(self) -> list[int]:
        """Returns the processes that have run since."""
        return [pid for pid, used in self._used.items() if _cpu_ns(pid) > used]

    def resume(self) -> None:
        """Resumes them."""
        for pid in self._used:
            _send(pid, signal.SIGCONT)


def stop_tree(root: int, forks_before: int | None = None) -> Stopped:
    """Stops a process and its descendants, including those started meanwhile.

    `forks_before` is as for `descendants`. Raises TimeoutError if a process still runs after `STOP_PATIENCE_S`.
    """
    deadline = time.monotonic() + STOP_PATIENCE_S
    while True:
        tree = [root, *descendants(root, forks_before=forks_before)]
        running = [pid for pid in tree if not _is_stopped(pid)]
        if not running:
            return Stopped(tree)
        for pid in running:
            _send_to_group(pid, signal.SIGSTOP)
            _send(pid, signal.SIGSTOP)
        if time.monotonic() > deadline:
            raise TimeoutError(f"cannot stop processes {running}")
        time.sleep(STOP_POLL_S)  # they may need this processor to stop


def _most_cpu_ns(pid: int) -> int:
    """Returns the most CPU time in ns that a process has used if it stays stopped."""
    settling = 0 if _leaves_processors(pid) else SETTLING_NS  # before its time is read
    return _cpu_ns(pid) + settling


def _cpu_ns(pid: int) -> int:
    """Returns the CPU time of all threads of a process in ns, or 0 if it is gone.

    The number of its clock is that of `clock_getcpuclockid(3)`, which Python lacks.
    """
    try:
        return time.clock_gettime_ns(~pid << 3 | CPU_CLOCK)
    except OSError:
        return 0


def _leaves_processors(pid: int) -> bool:
    """Waits until no thread of a stopped process is on a processor. Returns False if the kernel does not say so.

    /proc calls a thread stopped some microseconds before it leaves its processor. The kernel tells what system call it
    is in only afterwards (proc_pid_syscall(5)).
    """
    try:
        for thread in _threads(pid):
            file = os.open(f"/proc/{pid}/task/{thread}/syscall", os.O_RDONLY)
            try:
                os.read(file, STAT_BYTES)
            finally:
                os.close(file)
    except OSError:
        return False
    return True


def kill_tree(root: int) -> set[int]:
    """Kills a process and its descendants, including those started meanwhile. Returns the PIDs of the descendants.

    The root is stopped first and killed last. While it exists, orphans stay below it (a candidate is a subreaper), so
    that the next pass finds them. Each pass is faster than a fork bomb.
    """
    signal_tree(root, signal.SIGSTOP)
    found: set[int] = set()
    while below := descendants(root):
        found.update(below)
        for pid in reversed(below):  # children first: the end of a parent would give them to another process
            _send(pid, signal.SIGKILL)
    _send_to_group(root, signal.SIGKILL)  # if the root has ended by itself, its orphans are no longer below it
    _send(root, signal.SIGKILL)
    return found


def reap(pids: Iterable[int], patience: float = 5.0) -> None:
    """Reaps those of the given killed processes that became children of this process, a subreaper.

    Waits for at most `patience` seconds. Without this they stay zombies if the first process of the machine does not
    reap orphans.
    """
    deadline = time.monotonic() + patience
    left = [pid for pid in pids if _is_unreaped(pid)]
    while left and time.monotonic() < deadline:
        time.sleep(0.002)
        left = [pid for pid in left if _is_unreaped(pid)]


def _is_unreaped(pid: int) -> bool:
    """Whether a process is a child of this process that has not ended. Reaps it if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def kill_descendants(patience: float = 5.0) -> None:
    """Kills and reaps all descendants of this process, a subreaper.

    Raises TimeoutError if a process survives SIGKILL for longer than `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while below := descendants(os.getpid(), unreaped=True):
        for pid in below:
            _send(pid, signal.SIGKILL)
            _reap(pid)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {below} survive SIGKILL")
        time.sleep(0.005)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # not a child of this process (yet): its parent is being killed as well


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
    """Iterates over all PIDs in ascending order: parents mostly precede their children, and new processes come last."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _examine(pid: int) -> tuple[bool, int]:
    """Returns whether a process is alive, and its parent (0 if the process is gone).

    A process whose first thread has ended looks like a zombie, but is alive as long as it has other threads.
    """
    state, parent, threads = _stat(pid)
    return state not in "ZX" or threads > 1, parent


def _is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped or dead."""
    return all(_stat(f"{pid}/task/{thread}")[0] in "TtZX" for thread in _threads(pid))


def _threads(pid: int) -> list[str]:
    """Returns the ids of a process's threads; none if it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _stat(pid: int | str) -> tuple[str, int, int]:
    """Returns the state, parent and number of threads of a process; ("X", 0, 0) if it is gone.

    Does not use Python's file objects, which are six times slower: each call reads all processes twice.
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
    """Closes all descriptors of this process except `kept` and the standard streams."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > STANDARD_ERROR and descriptor not in kept:
            with suppress(OSError):  # the listing includes the descriptor of the folder itself
                os.close(descriptor)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
