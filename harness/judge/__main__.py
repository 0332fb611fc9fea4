"""The judge process, over an inherited connection: `python -m harness.judge DESCRIPTOR`.

The processes that it needs are started before it imports torch itself, so that all of them import it side by side.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from harness.judge.launcher import Launcher
from harness.judge.rehearsal_process import RehearsalProcess
from harness.wire.processes import die_with_parent


def main() -> int:
    """Serves the orchestrator until it closes the connection; gives the exit status."""
    die_with_parent()
    launcher, rehearsal = Launcher(), RehearsalProcess()
    try:
        from harness.judge.judge import serve

        return serve(Connection(int(sys.argv[1])), launcher, rehearsal)
    finally:
        rehearsal.close()
        launcher.close()


if __name__ == "__main__":
    sys.exit(main())
