"""The judge process: `python -m inlinebench.judge DESCRIPTOR`, with the descriptor of an inherited connection.

It starts with a clean environment and imports torch. Then it forks the forkserver, which shares the import. A fork
inherits its parent's memory, so only now does the judge receive the scheduler's environment and the settings. It starts
CUDA here and in the probe, and imports the judge's own modules meanwhile.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

from inlinebench.devices.registry import wake
from inlinebench.messages import Settings
from inlinebench.problem.probe.process import ProbeProcess
from inlinebench.process.launcher import Launcher
from inlinebench.wire.processes import die_with_parent


def main() -> int:
    """Serves the scheduler until it closes the connection. Returns the exit status."""
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
    except EOFError:  # the scheduler has ended without a request
        return 0
    finally:
        probe.close()
        launcher.close()


if __name__ == "__main__":
    sys.exit(main())
