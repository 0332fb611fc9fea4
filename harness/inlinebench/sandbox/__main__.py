"""Runs a program inside a sandbox: `python -m inlinebench.sandbox PARENT POLICY PROGRAM ARGUMENTS...`. POLICY is JSON.

For compilers, because their sources and flags come from a solution. Nothing that they start outlives them. The exit
status is the program's, or 128 plus the signal that ended it. It ends with process PARENT, which started it, and runs
nothing if that has ended already. `supervisor.command` returns such a command.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, enter
from inlinebench.wire.processes import die_with_parent

NICENESS = 10
"""Compilers yield to judges and candidates, which may be timing."""


def main() -> int:
    os.nice(NICENESS)
    die_with_parent(int(sys.argv[1]))
    return supervisor.run(Policy.from_json(json.loads(sys.argv[2])), _execute)


def _execute(policy: Policy) -> NoReturn:
    enter(policy)
    os.execvp(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
