"""The descriptors that a forked forkserver inherits, and the replacement of one that is killed."""

from __future__ import annotations

import subprocess
import sys

FORKS = """
import os
from pathlib import Path
from inlinebench.process.launcher import Launcher
theirs, ours = os.pipe()  # like the judge's connection to the scheduler
os.set_inheritable(theirs, True)
launcher = Launcher(fork=True)
def links():
    while True:
        try:
            found = [os.readlink(path) for path in Path(f"/proc/{launcher.pid}/fd").iterdir()]
        except FileNotFoundError:  # the file of a module that it has just read and closed
            continue
        if len(found) <= 4 and not any(Path(link).is_file() for link in found):
            return found
found = links()
print(sum(link.startswith("socket:") for link in found), os.readlink(f"/proc/self/fd/{theirs}") in found)
launcher.close()
"""

KILLS = """
import os, signal, socket, threading
from inlinebench.process.launcher import Launcher
launcher = Launcher()
def start():
    ours, theirs = socket.socketpair()
    pid = launcher.serve("builtins:id", theirs.fileno())
    return os.waitpid(pid, 0) == (pid, 0)
first = launcher.pid
print(start(), launcher.pid == first)
os.kill(first, signal.SIGSTOP)  # so that it has the request when it is killed
threading.Timer(0.3, lambda: os.kill(first, signal.SIGKILL)).start()
try:
    start()
except OSError as error:
    print(error)
print(start(), launcher.pid == first)
launcher.close()
"""


def test_a_forkserver_that_is_killed_with_a_request_is_named_and_replaced_for_the_next_one() -> None:
    done = subprocess.run([sys.executable, "-c", KILLS], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "True True\nthe forkserver was killed\nTrue False\n", done.stderr


def test_a_forked_forkserver_inherits_only_the_socket_for_requests() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "1 False\n", done.stderr
