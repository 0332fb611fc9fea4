from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inlinebench.wire import processes as module
from inlinebench.wire.processes import Child, descendants, forks_so_far, kill_tree, signal_tree, stop_tree

TREE = """
import subprocess, sys, time
inner = "import subprocess, time; print(subprocess.Popen(['sleep', '86396']).pid, flush=True); time.sleep(86396)"
subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
time.sleep(86396)
"""
ORPHANS = """
import os, signal, sys, time
from inlinebench.wire.processes import become_subreaper, descendants, kill_descendants
become_subreaper()
if (middle := os.fork()) == 0:
    os.setsid()
    os.fork() or time.sleep(86396)
    os._exit(0)
os.waitpid(middle, 0)
before = descendants(os.getpid())
kill_descendants()
print(len(before), descendants(os.getpid()))
"""


def state(pid: int) -> str:
    """Returns the state letter of a process in /proc, or "" if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_for(pids: list[int], states: str) -> None:
    deadline = time.monotonic() + 5
    while not all((state(pid) or "-") in states for pid in pids):
        assert time.monotonic() < deadline, [state(pid) for pid in pids]
        time.sleep(0.01)


@pytest.fixture
def tree() -> Iterator[tuple[int, list[int]]]:
    """A process whose child is in another session and has a child itself."""
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    below = descendants(process.pid)
    assert below[-1] == grandchild and len(below) == 2
    yield process.pid, below
    kill_tree(process.pid)
    process.wait()
    process.stdout.close()


def test_a_whole_tree_is_stopped_and_resumed(tree: tuple[int, list[int]]) -> None:
    root, below = tree
    signal_tree(root, signal.SIGSTOP)
    wait_for([root, *below], "T")
    signal_tree(root, signal.SIGCONT)
    wait_for([root, *below], "SR")


def test_a_whole_tree_is_killed_across_sessions(tree: tuple[int, list[int]]) -> None:
    root, below = tree
    kill_tree(root)
    wait_for([root, *below], "Z-")


def test_signalling_a_process_that_has_ended_does_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    kill_tree(process.pid)
    signal_tree(process.pid, signal.SIGSTOP)


def test_orphans_are_killed_with_all_descendants() -> None:
    found = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, timeout=30, check=False,
                           env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "harness")})
    assert found.stdout.split() == ["1", "[]"], found.stderr


RESTLESS = """
import os, time
from inlinebench.wire.processes import become_subreaper
become_subreaper()
if os.fork() == 0:
    end = time.time() + 20
    while time.time() < end:  # each iteration continues in a new process
        if os.fork():
            os._exit(0)
    os._exit(0)
print("ready", flush=True)
time.sleep(86396)
"""


def test_a_process_that_keeps_forking_is_stopped_and_killed_by_its_group() -> None:
    root = subprocess.Popen([sys.executable, "-c", RESTLESS], stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    assert root.stdout is not None and root.stdout.readline() == "ready\n"
    try:
        for _ in range(5):
            stop_tree(root.pid)
            before = descendants(root.pid)
            time.sleep(0.05)
            assert descendants(root.pid) == before != []
            assert {state(pid) for pid in [root.pid, *before]} == {"T"}
            signal_tree(root.pid, signal.SIGCONT)
    finally:
        kill_tree(root.pid)
        root.wait()
    assert descendants(root.pid) == []


ORPHAN = """
import os, sys
from inlinebench.wire.processes import {function}
parent = int(sys.argv[1])
try:
    {function}(parent)
except ProcessLookupError:
    sys.exit(7)
"""


@pytest.mark.parametrize("function", ["await_parent", "die_with_parent"])
def test_a_process_whose_future_parent_has_ended_raises(function: str) -> None:
    """As a candidate does if its judge is killed before it becomes the candidate's parent."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    line = [sys.executable, "-c", ORPHAN.format(function=function)]
    assert subprocess.run([*line, str(gone.pid)], timeout=60, check=False).returncode == 7
    assert subprocess.run([*line, str(os.getpid())], timeout=60, check=False).returncode == 0


def test_a_stopped_tree_is_resumed(tree: tuple[int, list[int]]) -> None:
    root, below = tree
    stopped = stop_tree(root)
    assert set(stopped.pids) == {root, *below}
    wait_for([root, *below], "T")
    stopped.resume()
    wait_for([root, *below], "SR")


BUSY = """
import os, threading, time
def work(pause):
    while True:
        time.sleep(pause)
for number in range(4):
    threading.Thread(target=work, args=(number * 1e-4,), daemon=True).start()
if os.fork():
    print("ready", flush=True)
work(0)
"""


@pytest.fixture
def busy() -> Iterator[int]:
    """A process with busy and with sleeping threads, and a child like it."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process.pid
    kill_tree(process.pid)
    process.wait()


def test_processes_that_stay_stopped_have_not_run(busy: int) -> None:
    for number in range(100):
        stopped = stop_tree(busy)
        time.sleep(1e-3 * (number % 3))
        assert stopped.ran() == []
        stopped.resume()


@pytest.mark.parametrize("stopped_again", [False, True])
def test_a_process_that_ran_while_it_was_stopped_is_found(busy: int, stopped_again: bool) -> None:
    stopped = stop_tree(busy)
    os.kill(busy, signal.SIGCONT)
    if stopped_again:
        os.kill(busy, signal.SIGSTOP)
    time.sleep(0.1)
    assert stopped.ran() == [busy]


def test_only_younger_processes_are_examined_if_pids_have_not_wrapped_around(monkeypatch: pytest.MonkeyPatch) -> None:
    before = forks_so_far()
    assert before is not None
    process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    below, examined = descendants(process.pid), list[int]()
    real = module._examine
    monkeypatch.setattr(module, "_examine", lambda pid: examined.append(pid) or real(pid))
    try:
        assert set(stop_tree(process.pid, before).pids) == {process.pid, *below}
        assert min(examined) > process.pid
        examined.clear()
        assert set(stop_tree(process.pid).pids) == {process.pid, *below}
        assert min(examined) < process.pid
    finally:
        kill_tree(process.pid)
        process.wait()


@pytest.mark.parametrize(("before", "now", "highest", "expected"), [
    (1000, 1001, 32768, 500), (1000, 33267, 32768, 500), (1000, 33268, 32768, 0), (1000, 90000, 32768, 0),
    (1000, 1000, 32768, 0), (None, 1001, 32768, 0), (1000, None, 32768, 0), (1000, 1001, 0, 0),
])
def test_pids_are_not_compared_if_they_may_have_wrapped_around(
    before: int | None, now: int | None, highest: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "forks_so_far", lambda: now)
    monkeypatch.setattr(module, "_highest_pid", lambda: highest)
    assert module._may_be_below(500, before) == expected


def test_started_processes_are_counted() -> None:
    before = forks_so_far()
    subprocess.run(["true"], check=True)
    after = forks_so_far()
    assert before is not None and after is not None and after > before


def test_a_child_runs_until_it_is_ended() -> None:
    pid = os.fork() or time.sleep(86396)
    assert isinstance(pid, int)
    child = Child(pid)
    assert child.is_running() and child.pid == pid
    child.end()
    assert not child.is_running() and state(pid) == ""
    child.end()  # ending it again does nothing


def test_a_child_that_was_waited_for_elsewhere_has_ended() -> None:
    pid = os.fork() or os._exit(0)
    assert isinstance(pid, int)
    os.waitpid(pid, 0)
    assert not Child(pid).is_running()


BURIES = """
import os, signal, time
from inlinebench.wire.processes import become_subreaper, reap, kill_tree
become_subreaper()
root = os.fork()
if root == 0:
    os.fork() or time.sleep(86396)
    time.sleep(86396)
time.sleep(0.2)
below = kill_tree(root)
os.waitpid(root, 0)
reap(below)
living = os.fork() or time.sleep(86396)
reap([living], patience=0.05)  # it has not ended, so the wait ends after the patience
print(len(below), [os.path.exists(f"/proc/{pid}") for pid in (*below, living)])
os.kill(living, signal.SIGKILL)
"""


def test_killed_descendants_are_reaped() -> None:
    done = subprocess.run([sys.executable, "-c", BURIES], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1 [False, True]\n"


CLOSES = """
import os
from inlinebench.wire.processes import close_all_but
kept, other = os.pipe()
high = os.dup2(other, 300)
close_all_but([kept])
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1] == [0, 1, 2, kept])  # the last is the listed folder itself
"""


def test_all_other_descriptors_are_closed() -> None:
    done = subprocess.run([sys.executable, "-c", CLOSES], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_cpu_times_are_read_when_threads_have_left_their_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    used = [1]

    def leaves(pid: int) -> bool:
        used.append(1)  # in the microseconds that it takes
        return True

    monkeypatch.setattr(module, "_leaves_processors", leaves)
    monkeypatch.setattr(module, "_cpu_ns", lambda pid: sum(used))
    stopped = module.Stopped([1])
    assert stopped.ran() == []
    used.append(1)
    assert stopped.ran() == [1]
