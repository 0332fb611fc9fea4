"""Runs a program inside a sandbox: `python -m inlinebench.sandbox POLICY PROGRAM ARGUMENTS...`. POLICY is JSON.

For compilers, because their sources and flags come from a solution. This process stays outside of the sandbox and
adopts orphans of the program. When the program has ended, it kills them, so that nothing outlives the build. Its exit
status is the program's, or 128 plus the signal that ended the program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace

from inlinebench.sandbox.policy import Policy, enter
from inlinebench.wire.processes import become_subreaper, die_with_parent, kill_stray_children

NICENESS = 10
"""Compilers yield to judges and candidates, which may be timing."""
SIGNALLED = 128
"""Added to the number of a signal in an exit status, as shells do."""


def main() -> int:
    os.nice(NICENESS)
    policy = Policy.from_json(json.loads(sys.argv[1]))
    die_with_parent()
    become_subreaper()
    supervisor = os.getpid()
    program = os.fork()
    if program == 0:
        os.setpgid(0, 0)  # nothing inside the sandbox can leave this group
        enter(replace(policy, protected=(*policy.protected, supervisor)))
        die_with_parent(supervisor)
        os.execvp(sys.argv[2], sys.argv[2:])
    status = _run(program)
    kill_stray_children(keep=())
    return status


def _run(program: int) -> int:
    """Waits for a child, kills the rest of its process group, and returns its exit status.

    A signal to the group reaches all of it at once, also a process that moves on to a new one all the time. Orphans are
    reaped meanwhile, because they would use up the PIDs.
    """
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # without WNOHANG
        if ended.si_pid == program:
            os.killpg(program, signal.SIGKILL)  # before its PID is free
        code = os.waitstatus_to_exitcode(os.waitpid(ended.si_pid, 0)[1])
        if ended.si_pid == program:
            return code if code >= 0 else SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main())
