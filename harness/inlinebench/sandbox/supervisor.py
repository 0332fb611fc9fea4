"""The process above each sandbox: it starts the program, reaps its orphans, and ends with it, so that nothing is left.

It is the first process of the sandbox's PID namespace. When it ends, the kernel kills all that is in the namespace.
Where a machine offers no PID namespace, it is a subreaper and kills what is left itself. The program's restrictions do
not apply to it, and the program can neither signal it nor access its memory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace

from inlinebench.sandbox import privileges
from inlinebench.sandbox.policy import SHARED_MEMORY_BYTES, Policy, Protection
from inlinebench.wire.processes import (
    await_parent,
    become_subreaper,
    close_all_but,
    die_with_parent,
    fork,
    kill_descendants,
)

SIGNALLED = 128
"""Added to the number of a signal in an exit status, as shells do."""

Program = Callable[[Policy], int]
"""A program that restricts itself to a policy with `inlinebench.sandbox.policy.enter`, and returns its exit status."""


def command(policy: Policy, *options: str) -> list[str]:
    """Returns a command that runs the words after it inside the sandbox, below this process and not longer than it.

    `options` are Python's.
    """
    return [sys.executable, *options, "-m", "inlinebench.sandbox", str(os.getpid()), json.dumps(policy.to_json())]


def start(policy: Policy, program: Program, *, parent: int | None = None) -> int:
    """Starts a program below a supervisor, and returns the supervisor's process id.

    The supervisor's exit status is the program's, or `SIGNALLED` plus the signal that ended the program. It enters the
    namespaces of the policy, with which this process cannot start anything else afterwards.

    Args:
        policy: what the program may access.
        program: runs in a process of its own.
        parent: the process that the supervisor ends with. This process must end soon if it is another one. None: this
            process.
    """
    parent = os.getpid() if parent is None else parent
    wanted = {Protection(name) for name in policy.protections}
    network, pids = Protection.NAMESPACES in wanted, Protection.PID_NAMESPACE in wanted
    failure: OSError | None = None
    try:
        if network or pids:
            privileges.leave_namespaces(network=network, pids=pids)
    except OSError as error:
        failure = error  # the supervisor ends with it, whose status and log are looked at

    def supervise() -> int:
        if failure is not None:
            raise failure
        await_parent(parent)
        die_with_parent(parent)
        if pids:
            privileges.mount_proc()
        if network:
            privileges.mount_shared_memory(SHARED_MEMORY_BYTES)
        become_subreaper()
        supervisor = os.getpid()
        child = fork(lambda: _restricted(program, policy, supervisor))
        close_all_but(())  # of the program's channels nothing stays open when it ends
        status = _wait(child)
        kill_descendants()
        return status

    return fork(supervise)


def run(policy: Policy, program: Program) -> int:
    """Starts a program below a supervisor, waits for it, and returns its exit status."""
    become_subreaper()  # if this process is killed with all below it, the supervisor may be killed before the rest
    return os.waitstatus_to_exitcode(os.waitpid(start(policy, program), 0)[1])


def _restricted(program: Program, policy: Policy, supervisor: int) -> int:
    os.setsid()  # nothing inside the sandbox can leave this session and its process group
    die_with_parent(supervisor)
    return program(replace(policy, protected=(*policy.protected, supervisor)))


def _wait(program: int) -> int:
    """Waits for a child, kills the rest of its process group, and returns its exit status. Reaps orphans meanwhile,
    which would use up the PIDs.

    A signal to the group reaches all of it at once, also a process that moves on to a new one all the time.
    """
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None  # without WNOHANG
        if ended.si_pid == program:
            os.killpg(program, signal.SIGKILL)  # before its PID is free
        code = os.waitstatus_to_exitcode(os.waitpid(ended.si_pid, 0)[1])
        if ended.si_pid == program:
            return code if code >= 0 else SIGNALLED - code
