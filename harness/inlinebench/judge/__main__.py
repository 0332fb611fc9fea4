"""The judge process, over an inherited connection: `python -m inlinebench.judge DESCRIPTOR`.

It is started with a clean environment and imports torch; then the forkserver is made of it, which shares the import;
and only then it learns what is nobody else's business, the orchestrator's environment and the settings, has CUDA start
here and in the rehearsal, and meanwhile imports the judge's own modules.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

from inlinebench.messages import Settings
from inlinebench.problem.probe_process import ProbeProcess
from inlinebench.process.launcher import Launcher
from inlinebench.wire.processes import die_with_parent
from inlinebench.wire.wake import wake


def main() -> int:
    """Serves the orchestrator until it closes the connection; gives the exit status."""
    die_with_parent()
    launcher = Launcher(fork=True)
    connection = Connection(int(sys.argv[1]))
    probe = ProbeProcess(launcher)
    try:
        os.environ.update(connection.recv())
        settings: Settings = connection.recv()
        probe.wake(settings.device)
        wake(settings.device)
        from inlinebench.judge.loop import serve

        return serve(connection, settings, launcher, probe)
    except EOFError:  # the orchestrator has ended before it wanted anything
        return 0
    finally:
        probe.close()
        launcher.close()


if __name__ == "__main__":
    sys.exit(main())
