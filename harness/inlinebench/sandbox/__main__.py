"""Runs a program inside a sandbox: `python -m inlinebench.sandbox POLICY PROGRAM ARGUMENTS...`, the policy as JSON.

For compilers: what they are given to compile, and the flags with it, come from a solution. So nothing that they started
outlives them: this process stays outside of the sandbox, adopts whatever they orphan, and kills it when the program has
ended. It ends with the program's exit status, or with 128 and the signal that ended it.
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
"""Judges and candidates that time something come first."""
SIGNALLED = 128
"""Added to a signal's number in an exit status, as shells do."""


def main() -> int:
    os.nice(NICENESS)
    policy = Policy.from_json(json.loads(sys.argv[1]))
    die_with_parent()
    become_subreaper()
    supervisor = os.getpid()
    # The program's group is this process's, too, so that a signal to the group would end it before its work is done.
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
    """The exit status of a child, once it has ended."""
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    return code if code >= 0 else SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main())
