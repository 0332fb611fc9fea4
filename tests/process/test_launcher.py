"""What a forkserver that is a copy of its starter takes along."""

from __future__ import annotations

import subprocess
import sys

FORKS = """
import os
from pathlib import Path
from inlinebench.process.launcher import Launcher
theirs, ours = os.pipe()  # as the judge has a connection to the orchestrator
os.set_inheritable(theirs, True)
launcher = Launcher(fork=True)
def links():
    while True:
        try:
            found = [os.readlink(path) for path in Path(f"/proc/{launcher.pid}/fd").iterdir()]
        except FileNotFoundError:  # a module that it has read by now
            continue
        if len(found) <= 4 and not any(Path(link).is_file() for link in found):
            return found
found = links()
print(sum(link.startswith("socket:") for link in found), os.readlink(f"/proc/self/fd/{theirs}") in found)
launcher.close()
"""


def test_a_forked_forkserver_has_the_orders_and_nothing_else_of_its_starter() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "1 False\n", done.stderr
