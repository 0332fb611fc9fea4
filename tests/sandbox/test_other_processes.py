"""No process in a sandbox changes another process or leaves something behind, and honest programs still work.

Each attempt is also made without protections, where it succeeds: otherwise its test could not fail.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inlinebench.sandbox.policy import REQUIRED, Sandbox
from inlinebench.sandbox.self_test import available

from .running import PROTECTIONS, run

pytestmark = pytest.mark.skipif(
    not set(REQUIRED) <= set(available()), reason="this machine does not offer the whole sandbox"
)

FILTER_ONLY = tuple(name for name in PROTECTIONS if name in ("system calls",))
"""Landlock also refuses some of the attempts; this leaves them to the filter."""
CALLS = """
import ctypes, os, resource, signal, time
C = ctypes.CDLL(None, use_errno=True)
"""
SETS: dict[str, tuple[str, Callable[[int], object]]] = {
    "limits": ("resource.prlimit({pid}, resource.RLIMIT_NOFILE, (17, 17))",
               lambda pid: Path(f"/proc/{pid}/limits").read_text()),
    "priority": ("os.setpriority(os.PRIO_PROCESS, {pid}, 7)", lambda pid: os.getpriority(os.PRIO_PROCESS, pid)),
    "priority of a group": ("os.setpriority(os.PRIO_PGRP, {pid}, 7)",
                            lambda pid: os.getpriority(os.PRIO_PROCESS, pid)),
    "affinity": ("os.sched_setaffinity({pid}, [max(os.sched_getaffinity(0))])", os.sched_getaffinity),
    "policy": ("os.sched_setscheduler({pid}, os.SCHED_BATCH, os.sched_param(0))", os.sched_getscheduler),
    "attributes": ("C.syscall(314, {pid}, bytes([48, 0, 0, 0, 3]) + bytes(43), 0)", os.sched_getscheduler),
    "input and output": ("C.syscall(251, 1, {pid}, 3 << 13)",
                         lambda pid: subprocess.check_output(["ionice", "-p", str(pid)])),
    "a signal of a pipe": (
        "import fcntl; a, b = os.pipe(); fcntl.fcntl(a, fcntl.F_SETOWN, {pid}); fcntl.fcntl(a, 10, signal.SIGTERM); "
        "fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | os.O_ASYNC); os.write(b, b'x'); time.sleep(0.3)",
        lambda pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z",
    ),
}
"""What a process could do to another one, and how to see it."""


@pytest.fixture
def neighbour() -> Iterator[int]:
    """The PID of a process of the same user in its own process group."""
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)
    yield process.pid
    process.kill()
    process.wait()


def try_all(protections: tuple[str, ...], scratch: Path, code: str) -> str:
    """Runs code with these protections, as a program that is not protected by its PID."""
    policy = Sandbox(protections).policy(scratch, (), ())
    return run(CALLS + code, scratch, policy=policy)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the attempts use numbers of x86_64")
@pytest.mark.parametrize("what", SETS)
def test_other_processes_keep_their_settings(scratch: Path, neighbour: int, what: str) -> None:
    code, observe = SETS[what]
    before = observe(neighbour)
    for protections in (PROTECTIONS, FILTER_ONLY):
        try_all(protections, scratch, code.format(pid=neighbour))
        assert observe(neighbour) == before
    try_all((), scratch, code.format(pid=neighbour))
    assert observe(neighbour) != before


def test_all_processes_of_the_user_keep_their_priority(scratch: Path) -> None:
    assert "PermissionError" in try_all(PROTECTIONS, scratch, "os.setpriority(os.PRIO_USER, 0, 19)")


@pytest.mark.parametrize("code", [
    "resource.prlimit(os.getpid(), 7, (50, 50)); print(resource.getrlimit(7))",
    "resource.setrlimit(7, (50, 50)); print(resource.getrlimit(7))",
    "os.nice(3); os.setpriority(os.PRIO_PROCESS, os.getpid(), 15); print(os.getpriority(os.PRIO_PROCESS, 0))",
    "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); print(len(os.sched_getaffinity(0)))",
    "os.sched_setaffinity(os.getpid(), [max(os.sched_getaffinity(0))]); print(len(os.sched_getaffinity(0)))",
    "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); print(os.sched_getscheduler(0))",
])
def test_a_process_changes_its_own_settings(scratch: Path, code: str) -> None:
    assert try_all(PROTECTIONS, scratch, code) == try_all((), scratch, code) != ""
    assert "Error" not in try_all(PROTECTIONS, scratch, code)


def test_a_thread_changes_its_own_settings(scratch: Path) -> None:
    code = ("import threading\ndef work():\n    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
            "    os.setpriority(os.PRIO_PROCESS, 0, 15)\n"
            "    print(len(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0))\n"
            "thread = threading.Thread(target=work); thread.start(); thread.join()")
    assert try_all(PROTECTIONS, scratch, code) == "1 15"


def test_a_thread_starts_with_an_affinity(tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "thread.c"
    source.write_text("""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
static void* work(void* unused) { return unused; }
int main() {
  pthread_attr_t attributes;
  pthread_t thread;
  cpu_set_t cpus;
  pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
  int status = pthread_create(&thread, &attributes, work, 0);
  if (!status) pthread_join(thread, 0);
  printf("%d\\n", status);
}
""")
    subprocess.run(["cc", "-pthread", str(source), "-o", str(scratch / "thread")], check=True)
    assert try_all(PROTECTIONS, scratch, "import subprocess; print(subprocess.check_output('./thread'))") == "b'0\\n'"


QUEUES = {
    "System V memory": "C.shmget(5, 10, 0o1666)", "System V semaphores": "C.semget(5, 1, 0o1666)",
    "System V queues": "C.msgget(5, 0o1666)", "POSIX queues": "C.mq_open(b'/inlinebench', 0o102, 0o666, None)",
}


@pytest.mark.parametrize("what", QUEUES)
def test_queues_that_outlive_a_process_are_refused(scratch: Path, what: str) -> None:
    assert try_all(PROTECTIONS, scratch, f"print({QUEUES[what]})") == "-1"


def test_an_existing_segment_of_shared_memory_cannot_be_used(scratch: Path) -> None:
    made = "m = C.shmget(0, 10, 0o1666)"
    segment = try_all((), scratch, f"{made}; print(m)")
    attach = f"C.shmat.restype = ctypes.c_long; print(C.shmat({segment}, None, 0))"
    try:
        assert try_all(PROTECTIONS, scratch, attach) == "-1"
        assert try_all((), scratch, attach) != "-1"
    finally:
        try_all((), scratch, f"C.shmctl({segment}, 0, None)")


@pytest.mark.parametrize("code", [
    "import multiprocessing as m; a = m.Semaphore(2); a.acquire(); print(a.get_value())",
    "from multiprocessing import shared_memory as s; a = s.SharedMemory(create=True, size=9); print(a.buf[0] + 1); "
    "a.close(); a.unlink()",
    "import multiprocessing as m; q = m.Queue(); p = m.Process(target=q.put, args=(1,)); p.start(); print(q.get()); "
    "p.join()",
    "import shutil; open('a', 'w').write('1'); shutil.copy2('a', 'b'); print(open('b').read())",
    "import subprocess; open('a.c', 'w').write('int f(){return 1;}'); "
    "subprocess.run(['cc', '-shared', 'a.c', '-o', 'a.so'], check=True); print(ctypes.CDLL('./a.so').f())",
    "import socket; print(len(socket.getaddrinfo('127.0.0.1', 80, type=socket.SOCK_STREAM)))",
    "import fcntl; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); fcntl.fcntl(f, fcntl.F_SETFD, 1); print(1)",
])
def test_honest_programs_work(scratch: Path, code: str) -> None:
    assert try_all(PROTECTIONS, scratch, code) == "1"


@pytest.mark.parametrize("code", [
    "os.chmod({path!r}, 0o777)", "os.fchmod(os.open({path!r}, os.O_RDONLY), 0o777)", "os.utime({path!r}, (1, 1))",
    "os.setxattr({path!r}, 'user.inlinebench', b'x')",
    "import fcntl; fcntl.ioctl(os.open({path!r}, os.O_RDONLY), 0x40086602, bytes([0x40, *bytes(7)]))",
])
def test_attributes_of_readable_files_stay_the_same(tmp_path: Path, scratch: Path, code: str) -> None:
    path = tmp_path / "shared"

    def attempt(protections: tuple[str, ...]) -> bool:
        """Makes a file and returns whether a program that may read it has changed its attributes."""
        path.write_text("x")
        before = facts()
        policy = Sandbox(protections).policy(scratch, (path,), (), False)
        run(f"import os; {code.format(path=str(path))}", scratch, policy=policy)
        return facts() != before

    def facts() -> tuple[int, float, list[str], str]:
        listed = subprocess.run(["lsattr", path], capture_output=True, text=True, check=False).stdout
        return path.stat().st_mode, path.stat().st_mtime, os.listxattr(path), listed

    assert not attempt(PROTECTIONS)
    if not attempt(()):
        pytest.skip("the file system does not have this attribute")


def test_datagrams_to_sockets_outside_are_refused(tmp_path: Path, scratch: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "socket"))
        server.settimeout(0.2)
        code = ("import socket\n{make}\n" + f"a.sendto(b'x', {str(tmp_path / 'socket')!r})")
        makes = ("a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
                 "a = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]")
        for make in makes:
            assert "PermissionError" in try_all(PROTECTIONS, scratch, code.format(make=make))
            try_all((), scratch, code.format(make=make))
            assert server.recv(1) == b"x"


def test_a_process_cannot_keep_its_orphans(scratch: Path) -> None:
    assert try_all(PROTECTIONS, scratch, "print(C.prctl(36, 1, 0, 0, 0), C.prctl(36, 0, 0, 0, 0))") == "-1 -1"
    assert try_all(PROTECTIONS, scratch, "print(C.prctl(15, b'name', 0, 0, 0))") == "0"
