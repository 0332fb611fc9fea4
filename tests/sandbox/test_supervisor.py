"""The supervisor of a sandbox: what it starts ends with it, and a PID namespace hides everything outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, Protection

from .running import PROTECTIONS, ROOT, run

NOTHING: tuple[str, ...] = ()
IDS = (Protection.PID_NAMESPACE.value,)
WITH_IDS = pytest.mark.skipif(not set(IDS) <= set(PROTECTIONS), reason="this machine does not offer PID namespaces")
EACH = pytest.mark.parametrize("protections", [NOTHING, pytest.param(IDS, marks=WITH_IDS)], ids=["none", "namespace"])
SIBLING = "ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0)"
"""clone with CLONE_PARENT."""
LEFT_BEHIND = {
    "a child": "os.fork()",
    "an orphan in a session of its own": "(os.fork() or (os.setsid(), os.fork() and os._exit(0)) and 0)",
    "a sibling": SIBLING,
    "a sibling of a child": f"(os.fork() or ({SIBLING} and os._exit(0)) and 0)",
}


def policy(protections: tuple[str, ...]) -> Policy:
    return Policy((), (), (), protections)


def running(argument: str) -> list[str]:
    """Returns the processes that were started with this argument."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if argument.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


@EACH
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the attempts use numbers of x86_64")
@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_nothing_outlives_the_program(scratch: Path, protections: tuple[str, ...], what: str) -> None:
    seconds = f"86371.{os.getpid()}"
    code = f"""
import ctypes, os, time
if {LEFT_BEHIND[what]} == 0:
    os.closerange(0, 100)
    os.execvp('sleep', ['sleep', '{seconds}'])
time.sleep(0.5)
def words(pid):
    try:
        return open(f'/proc/{{pid}}/cmdline', 'rb').read().split(bytes(1))
    except OSError:  # it has ended meanwhile
        return []
print(sum(b'{seconds}' in words(pid) for pid in os.listdir('/proc') if pid.isdigit()))
"""
    assert run(code, scratch, policy=policy(protections)) == "1"
    assert running(seconds) == []


@EACH
def test_all_ends_if_the_supervisor_is_killed_from_outside(scratch: Path, protections: tuple[str, ...]) -> None:
    seconds = f"86372.{os.getpid()}"
    command = supervisor.command(policy(protections))
    process = subprocess.Popen([*command, "sleep", seconds], cwd=scratch)
    deadline = time.monotonic() + 20
    while not (found := [pid for pid in running(seconds) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    while running(seconds):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


@EACH
@pytest.mark.parametrize("ended", [False, True])
def test_nothing_runs_if_who_started_the_supervisor_has_ended_already(
    scratch: Path, protections: tuple[str, ...], ended: bool
) -> None:
    command = supervisor.command(policy(protections))
    with subprocess.Popen(["true"]) as other:
        other.wait()
    if ended:
        command[command.index(str(os.getpid()))] = str(other.pid)
    command += ["echo", "ran"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == (("", 1) if ended else ("ran\n", 0))
    assert ("ProcessLookupError" in done.stderr) is ended


@EACH
@pytest.mark.parametrize(("act", "status"), [
    ("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + 9), ("os.abort()", 128 + 6), ("0", 0),
])
def test_the_exit_status_is_the_programs(scratch: Path, protections: tuple[str, ...], act: str, status: int) -> None:
    command = supervisor.command(policy(protections))
    code = f"import os, signal, sys; {act}"
    done = subprocess.run([*command, sys.executable, "-c", code], cwd=scratch, timeout=60, check=False)
    assert done.returncode == status


def test_a_namespace_that_cannot_be_entered_fails(scratch: Path) -> None:
    code = ("import os, sys; from inlinebench.sandbox import policy, privileges, seccomp, supervisor\n"
            "privileges.gain_nothing(); seccomp.install(())  # which refuses `unshare`\n"
            f"pid = supervisor.start(policy.Policy((), (), (), {IDS!r}), lambda inside: 0)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    done = subprocess.run([sys.executable, "-c", code], cwd=scratch, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "harness")}, check=False)
    assert done.returncode == 1 and "unshare: Operation not permitted" in done.stderr


@WITH_IDS
def test_processes_outside_are_not_visible(scratch: Path) -> None:
    code = f"import os; print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()), {os.getpid()})"
    assert run(code, scratch) == f"[1, 2] {os.getpid()}"
    assert "FileNotFoundError" in run(f"print(open('/proc/{os.getpid()}/statm').read())", scratch)
    assert run(f"import os; print(os.path.exists('/proc/{os.getpid()}/statm'))", scratch, policy=policy(())) == "True"


@WITH_IDS
def test_what_is_mounted_below_proc_stays(tmp_path: Path) -> None:
    other = tmp_path / "a file"
    other.write_text("other\n")
    code = f"""
import ctypes
from inlinebench.sandbox import privileges, supervisor
from inlinebench.sandbox.policy import Policy
def program(policy):
    print(open("/proc/version").read(), open("/proc/cpuinfo").read() == "", flush=True)
    return 0
privileges.leave_namespaces(network=False, pids=False)
for point in (b"/proc/version", b"/proc/%d/stat" % privileges.os.getpid()):
    assert not privileges._libc.mount({str(other).encode()!r}, point, None, ctypes.c_ulong(privileges._MS_BIND), None)
print(supervisor.run(Policy((), (), (), {IDS!r}), program))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["other", "False", "0"], ran.stderr
