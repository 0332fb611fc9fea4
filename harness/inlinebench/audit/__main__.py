"""The auditing process: `python -m inlinebench.audit DESCRIPTOR`, with the descriptor of an inherited connection.

It receives the name of a device and sends `AuditReady`. Then it receives problems, and sends what it finds about each.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from inlinebench.wire.processes import die_with_parent


def main() -> int:
    """Serves the command line until it closes the connection. Returns the exit status."""
    die_with_parent()
    connection = Connection(int(sys.argv[1]))
    from inlinebench.audit.audit import audit
    from inlinebench.audit.records import AuditReady
    from inlinebench.devices.base import UnusableDevice
    from inlinebench.devices.registry import resolve
    from inlinebench.problem.own_code import TorchSettings, report_steps
    from inlinebench.wire.arithmetic import exact_arithmetic

    try:
        device = resolve(connection.recv())
    except UnusableDevice as error:
        connection.send(AuditReady("", str(error)))
        return 0
    except EOFError:
        return 0
    exact_arithmetic(tf32=False)
    report_steps(lambda _: None, device)
    settings = TorchSettings()
    connection.send(AuditReady(str(device)))
    while True:
        try:
            problem = connection.recv()
        except EOFError:
            return 0
        settings.restore()  # what the previous problem set
        for message in audit(problem, device):
            connection.send(message)


if __name__ == "__main__":
    sys.exit(main())
