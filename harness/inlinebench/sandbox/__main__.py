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
    # The program is in the same process group: without this, a signal to the group would end this process early.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    program = os.fork()
    if program == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        enter(replace(policy, protected=(*policy.protected, supervisor)))
        die_with_parent(supervisor)
        os.execvp(sys.argv[2], sys.argv[2:])
    status = _wait_for(program)
    kill_stray_children(keep=())
    return status


def _wait_for(program: int) -> int:
    """Waits for a child and returns its exit status."""
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    return code if code >= 0 else SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main())
