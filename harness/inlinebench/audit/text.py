"""Audits as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from inlinebench.audit.records import Audit
from inlinebench.foreign import BAR, one_line

WIDTH = 118


def text_of(audit: Audit) -> str:
    """Returns the findings about a problem at a shape, a line for each, or one line without any."""
    at = "".join(f", {name}={value}" for name, value in audit.constants.items())
    title = one_line(f"{audit.problem} ({audit.shape}{at})")
    if not audit.findings:
        return f"{title}: nothing found"
    wide = max(len(finding.name) for finding in audit.findings)
    lines = []
    for finding in sorted(audit.findings, key=lambda each: not each.fault):
        begin = f"  {'FAULT' if finding.fault else 'remark'!s:<6}  {finding.name:<{wide}}  "
        lines.append(textwrap.fill(one_line(finding.text, None), WIDTH, initial_indent=begin,
                                   subsequent_indent=BAR.rjust(len(begin))))
    return "\n".join([f"{title}:", *lines])


def summary(audits: Sequence[Audit]) -> str:
    """Returns the last line: how many problems have faults, and which."""
    problems = dict.fromkeys(audit.problem for audit in audits)
    bad = [name for name in problems if any(audit.faults for audit in audits if audit.problem == name)]
    count = f"{len(problems)} problem{'s' * (len(problems) != 1)} audited"
    if not bad:
        return f"{count}: no faults"
    return f"{count}: {len(bad)} with faults ({', '.join(map(one_line, bad))})"
