"""`inlinebench audit`: says what makes problems bad benchmarks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from inlinebench import catalog
from inlinebench.audit.process import Auditor
from inlinebench.audit.records import Audit, Flaw
from inlinebench.audit.text import summary, text_of
from inlinebench.catalog import FULL, Problem, selection
from inlinebench.catalog.natural_sort import natural
from inlinebench.cli import arguments as command_line
from inlinebench.cli.arguments import AUDIT
from inlinebench.cli.exits import NOT_PASSED, OK, show
from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.foreign import inert_json
from inlinebench.options import Options
from inlinebench.scheduler.plan import check_replacements, problem_at, shape_name, shapes

PROGRAM = "inlinebench audit"


def main(arguments: Sequence[str]) -> int:
    """Prints what the audit finds and returns the exit status: 1 if there is a fault. Raises UsageError and NoDevice.
    """
    given = command_line.parsed(arguments, os.environ, AUDIT, PROGRAM)
    as_json = given.pop("json", False)
    wanted = command_line.options_of(given)
    chosen = chosen_problems(wanted)
    audits: list[Audit] = []
    for audit in audited(chosen, wanted):
        audits.append(audit)
        show(inert_json(json.dumps(audit.to_json(), default=str)) if as_json else text_of(audit))
    if not as_json:
        show(summary(audits))
    return NOT_PASSED if any(audit.faults for audit in audits) else OK


def parser() -> Parser:
    return command_line.parser_of(AUDIT, PROGRAM)


def chosen_problems(wanted: Options) -> list[Problem]:
    """Returns the problems that the options select. Raises UsageError if there are none."""
    known = catalog.read(wanted.problems, wanted.solutions)
    chosen = selection.problems(known, wanted.names, wanted.levels, wanted.tags)
    if not chosen:
        raise UsageError(f"nothing to audit: no problem files in {wanted.problems}; use --problems for another folder")
    check_replacements(chosen, wanted)
    return sorted(chosen, key=lambda each: (each.level or 0, natural(each.name)))


def audited(chosen: Sequence[Problem], wanted: Options) -> Iterator[Audit]:
    """Yields the audits of problems at their shapes. Raises NoDevice."""
    with Auditor(wanted.device, wanted.timeout) as auditor:
        for problem in chosen:
            if problem.error:
                yield Audit(problem.name, FULL, (Flaw("does not run", True, problem.error),), 0.0)
                continue
            for shape in shapes(problem, wanted, auditor.device):
                name = shape_name(problem, shape, wanted)
                yield auditor.audit(problem.name, name, problem_at(problem, shape, wanted))
