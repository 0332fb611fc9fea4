"""Results as Markdown: a compact comment for a pull request, or a document."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Sequence

from inlinebench.foreign import first_line, one_line
from inlinebench.report.rows import Row, Table, arrange, summary_label
from inlinebench.report.terminal.summary import SolutionSummary, summary
from inlinebench.report.terminal.table import remarks_on
from inlinebench.report.text import ABSENT, percent, significant
from inlinebench.report.workload_sets import HEADERS, answers
from inlinebench.results.result import Environment, Result, Verdict

ROOM = 60_000
"""The most characters of a comment. GitHub allows 65536."""
NAMES = ("problem", "solution", "shape", "device")
_LEFT_OUT = ("reference ms", "wall ms", "memory MiB", "own kernels")
"""Columns that a comment leaves out."""
_PLAIN = re.compile(r"[^`|\\]+")
_NEITHER = re.compile(r"[^A-Za-z0-9 ]")


def table(results: Sequence[Result]) -> str:
    """Returns a comment: counts, the summary, the table, and the reasons of failures in a folded section.

    Untrusted text is formatted as code, where it cannot add formatting, links or mentions. Rows and reasons beyond the
    size limit are left out, and the comment says how many.
    """
    if not results:
        return "Nothing was evaluated.\n"
    arranged = arrange(results)
    failed = [row for row in arranged.rows if row.result.verdict is not Verdict.PASSED]
    head = "\n\n".join(filter(None, [_counts(results), _summary(summary(results)), _sets(results)]))
    body = _table(arranged, ROOM * 2 // 3, _LEFT_OUT)
    reasons = _reasons(failed, ROOM - len(head) - len(body)) if failed else ""
    return "\n\n".join(filter(None, (head, body, reasons))) + "\n"


def document(results: Sequence[Result], title: str) -> str:
    """Returns a document: environments, counts, summary, the table with all columns, remarks, reasons of failures."""
    arranged = arrange(results)
    remarks = [f"- {code(row.label)}: {code(text)}" for row in arranged.rows for text in remarks_on(row.result)]
    failed = [row for row in arranged.rows if row.result.verdict is not Verdict.PASSED]
    environments = dict.fromkeys(_environment(each.environment) for each in results if each.environment is not None)
    parts = [f"# {one_line(title)}", *environments, _counts(results), _summary(summary(results)),
             _sets(results), _table(arranged, sys.maxsize, ()), "\n".join(remarks),
             _reasons(failed, sys.maxsize) if failed else ""]
    return "\n\n".join(filter(None, parts)) + "\n"


def _environment(environment: Environment) -> str:
    """Describes the environment of results in a sentence."""
    versions = {"driver": environment.driver, "torch": environment.torch, "CUDA": environment.cuda,
                "inlinebench": environment.harness}
    known = [f"{name} {code(version)}" for name, version in versions.items() if version]
    peaks = f"\n\nMeasured peaks: {code(environment.peaks)}." if environment.peaks else ""
    return f"On {code(environment.gpu or environment.cpu or 'an unknown device')}, {', '.join(known)}.{peaks}"


def code(text: str) -> str:
    """Returns `text` in one line as inline code for a table cell. No character in it can end the code.

    A pipe ends a cell even in code, a backtick ends code, and a backslash escapes the next character in some contexts.
    If the text has one of them, all characters but letters, digits and spaces become numeric entities.
    """
    line = one_line(text)
    if not line:
        return ABSENT
    if _PLAIN.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_NEITHER.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"


def _counts(results: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in results)
    others = [f"{verdict.symbol} {counts[verdict]} {verdict}" for verdict in Verdict
              if counts[verdict] and verdict is not Verdict.PASSED]
    return " · ".join([f"**{counts[Verdict.PASSED]} of {len(results)} passed**", *others])


def _summary(entries: Iterable[SolutionSummary]) -> str:
    rows = [
        [code(summary_label(entry)), str(entry.tried), str(entry.passed),
         ABSENT if entry.speedup is None else significant(entry.speedup), percent(entry.fast[1.0])]
        for entry in entries
    ]
    return "\n".join(_lines(["solution", "tried", "passed", "mean speedup", "fast_1"], ["---", *["---:"] * 4], rows))


def _sets(results: Sequence[Result]) -> str:
    rows = [[code(problem), code(solution), share, mean, code(worst), speedup]
            for problem, solution, share, mean, worst, speedup in (each.cells for each in answers(results))]
    return "\n".join(_lines(list(HEADERS), ["---"] * len(HEADERS), rows)) if rows else ""


def _table(arranged: Table, room: int, left_out: Container[str]) -> str:
    columns = {name: numeric for name, numeric in arranged.columns.items() if name not in left_out}
    headers = ["", *(name if name in arranged.own else code(name) for name in columns)]
    rules = ["---", *("---:" if numeric else "---" for numeric in columns.values())]
    rows = [[row.result.verdict.symbol, *_cells(row, arranged, columns)] for row in arranged.rows]
    head, rule, *lines = _lines(headers, rules, rows)
    kept = _within(lines, room)
    note = f"\n\n{len(lines) - len(kept)} more results are omitted." if len(kept) < len(lines) else ""
    return "\n".join([head, rule, *kept]) + note


def _cells(row: Row, arranged: Table, columns: Iterable[str]) -> list[str]:
    shown = dict(row.named(arranged.columns))
    return [code(shown[name].text) if name in NAMES else shown[name].text for name in columns]


def _lines(headers: list[str], rules: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (headers, rules, *rows)]


def _reasons(failed: Sequence[Row], room: int) -> str:
    lines = [
        f"- {row.result.verdict.symbol} {code(row.label)}: {row.result.verdict}: {code(first_line(row.result.reason))}"
        for row in failed
    ]
    kept = _within(lines, room - 200)
    if len(kept) < len(lines):
        kept.append(f"- and {len(lines) - len(kept)} more")
    return "\n".join([f"<details><summary>{len(lines)} did not pass</summary>", "", *kept, "", "</details>"])


def _within(lines: list[str], room: int) -> list[str]:
    """Returns as many of the first lines as fit into `room` characters."""
    kept = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
