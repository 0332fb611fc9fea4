from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy
from inlinebench.sandbox.watchdog import Breach, Limits, Watchdog, available_bytes
from inlinebench.wire.processes import descendants, forks_so_far, kill_tree

LIMITS = Limits(memory_bytes=300 << 20, processes=20, scratch_bytes=8 << 20, files=50)
NO_SANDBOX = Policy((), (), (), ())
BOMB = "import os, time\nend = time.time() + 20\nwhile time.time() < end:\n    os.fork()\n"


@contextmanager
def watched(code: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Watchdog]]:
    before = forks_so_far()
    process = subprocess.Popen([*supervisor.command(NO_SANDBOX), sys.executable, "-c", code],
                               cwd=folder, start_new_session=True,
                               env={"PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent / "harness")})
    watchdog = Watchdog(process.pid, folder, LIMITS, before)
    try:
        yield process, watchdog
    finally:
        watchdog.close()
        kill_tree(process.pid)
        process.wait()


def breach_of(code: str, folder: Path) -> Breach:
    """Returns the limit that a program is killed for, and checks that no process is left."""
    with watched(code, folder) as (process, watchdog):
        process.wait(30)
        deadline = time.monotonic() + 10
        while watchdog.breach is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert descendants(process.pid) == []
        return watchdog.breach


def test_a_fork_bomb_is_killed(tmp_path: Path) -> None:
    assert breach_of(f"exec({BOMB!r})", tmp_path).kind == "processes"
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert BOMB.splitlines()[1] not in listed


@pytest.mark.parametrize(("waits", "killed"), [("", True), ("; os.wait()", False)])
def test_processes_that_ended_count_until_they_are_waited_for(tmp_path: Path, waits: str, killed: bool) -> None:
    code = f"exec('import os, time\\nfor _ in range(40):\\n    os.fork() or os._exit(0){waits}\\ntime.sleep(1)')"
    with watched(code, tmp_path) as (process, watchdog):
        process.wait(30)
        watchdog.close()
        assert (watchdog.breach is not None and watchdog.breach.kind == "processes") is killed


def test_a_fork_bomb_without_a_main_thread_is_killed(tmp_path: Path) -> None:
    hidden = ("import ctypes, os, threading, time\n"
              "def later():\n    time.sleep(0.2)\n    [os.fork() or time.sleep(20) for _ in range(40)]\n"
              "if os.fork() == 0:\n    threading.Thread(target=later).start()\n"
              "    ctypes.CDLL(None).pthread_exit(None)\n"
              "time.sleep(20)\n")
    assert breach_of(f"exec({hidden!r})", tmp_path).kind == "processes"


@pytest.mark.parametrize("code", [
    "import time; x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096]); time.sleep(20)",
    "import os, time; [os.fork() for _ in range(3)]; x = bytearray(60 << 20); x[::4096] = b'x' * len(x[::4096]); "
    "time.sleep(20)",
    "import os, time; f = os.memfd_create('x'); [os.write(f, bytes(1 << 20)) for _ in range(400)]; time.sleep(20)",
])
def test_exceeding_the_memory_limit_kills_the_process(tmp_path: Path, code: str) -> None:
    found = breach_of(code, tmp_path)
    assert found.kind == "memory" and "0.293 GiB" in found.text


@pytest.mark.parametrize("code", [
    "import time; open('big', 'wb').write(b'x' * (20 << 20)); time.sleep(20)",
    "import os, time; f = open('big', 'wb'); os.unlink('big'); f.write(b'x' * (20 << 20)); f.flush(); time.sleep(20)",
    "import os, time; os.mkdir('below'); [open(f'below/{i}', 'w') for i in range(80)]; time.sleep(20)",
])
def test_exceeding_the_disk_limits_kills_the_process(tmp_path: Path, code: str) -> None:
    assert breach_of(code, tmp_path).kind == "files"


def test_a_folder_nested_too_deeply_to_be_counted_is_refused(tmp_path: Path) -> None:
    code = "import os, time\nfor _ in range(40):\n    os.mkdir('x' * 200)\n    os.chdir('x' * 200)\ntime.sleep(20)"
    found = breach_of(f"exec({code!r})", tmp_path)
    assert found.kind == "files" and "cannot be counted" in found.text


def test_a_program_within_its_limits_is_not_killed(tmp_path: Path) -> None:
    code = "import os, time; [os.fork() for _ in range(2)]; open(f'{os.getpid()}', 'w').write('x'); time.sleep(1)"
    with watched(code, tmp_path) as (process, watchdog):
        assert process.wait(30) == 0
        assert watchdog.breach is None


def test_available_memory_is_plausible() -> None:
    assert 1 << 20 < available_bytes() < 1 << 50
