"""Runs a program inside a sandbox: `python -m harness.sandbox POLICY PROGRAM ARGUMENTS...`, the policy as JSON.

For compilers: what they are given to compile, and the flags with it, come from a solution.
"""

from __future__ import annotations

import json
import os
import sys

from harness.sandbox.policy import Policy, enter
from harness.wire.processes import become_subreaper, die_with_parent

NICENESS = 10
"""Judges and candidates that time something come first."""


def main() -> None:
    os.nice(NICENESS)
    enter(Policy.from_json(json.loads(sys.argv[1])))
    die_with_parent()
    become_subreaper()
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
