"""The judge process, over an inherited connection: `python -m harness.judge DESCRIPTOR`.

It is started with a clean environment and imports torch; then the forkserver is made of it, which shares the import;
and only then it imports the judge's own modules, and learns what is nobody else's business: the orchestrator's
environment, and the settings.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

from harness.candidate import NVML_CHECK
from harness.judge.launcher import Launcher
from harness.judge.rehearsal_process import RehearsalProcess
from harness.wire.processes import die_with_parent


def main() -> int:
    """Serves the orchestrator until it closes the connection; gives the exit status."""
    die_with_parent()
    launcher = Launcher(fork=True)
    connection = Connection(int(sys.argv[1]))
    try:
        environment = connection.recv()
    except EOFError:
        return 0
    os.environ.pop(NVML_CHECK)
    os.environ.update(environment)
    rehearsal = RehearsalProcess(launcher)
    try:
        from harness.judge.judge import serve

        return serve(connection, launcher, rehearsal)
    finally:
        rehearsal.close()
        launcher.close()


if __name__ == "__main__":
    sys.exit(main())
