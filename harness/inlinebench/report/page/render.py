"""Renders the page of a run from its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from inlinebench.foreign import one_line
from inlinebench.report.changes import QUIET, cells, count
from inlinebench.report.comparison import Change, ComparedRow
from inlinebench.report.comparison import Row as RowName
from inlinebench.report.page.charts import Charts
from inlinebench.report.page.entries import Entry, columns_of, entries, kind_of
from inlinebench.report.page.matrix import matrix
from inlinebench.report.page.template import environment, own, policy
from inlinebench.report.rows import Row, Table, device_timing, summary_label
from inlinebench.report.terminal.summary import THRESHOLDS, summary
from inlinebench.report.terminal.table import NO_SPEEDUP
from inlinebench.report.text import ABSENT, percent, significant
from inlinebench.report.workload_sets import HEADERS, LEGEND, answers
from inlinebench.results.result import Result, Verdict


@dataclass(frozen=True)
class Since:
    """What changed since an earlier run."""

    name: str
    """The earlier run, such as the name of its file."""
    compared: tuple[ComparedRow, ...]
    """All rows of both runs, the worst changes first."""

    @property
    def count(self) -> str:
        """The number of rows of each change, in words."""
        return count(self.compared)


def render(
    table: Table, title: str, sources: Mapping[str, str], drawn: Charts, since: Since | None = None, *,
    files: str = "",
) -> str:
    """Returns the page of a table, with charts, source texts by `problem/solution`, and the changes since another run.

    `files` says where the results come from.
    """
    style, script = own("page.css") + own("table.css"), own("page.js")
    compared = since.compared if since else ()
    found = entries(table, sources, compared)
    return environment().get_template("page.html").render(
        title=one_line(title),
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        about=_about(table.rows, files),
        remarks=_remarks(table.rows),
        warnings=[NO_SPEEDUP] if any(not row.result.times_are_comparable for row in table.rows) else [],
        verdicts=_counts(table.rows),
        since=since,
        changed=[(each, cells(each)) for each in compared if each.change not in QUIET],
        change_counts=_change_counts(found),
        numbers={_key(entry.row): entry.row.number for entry in found},
        matrix=matrix(table.rows),
        summary=_summary([row.result for row in table.rows]),
        sets=[list(HEADERS), *(each.cells for each in answers([row.result for row in table.rows]))],
        sets_legend=LEGEND,
        figures=[(figure, Markup(figure.wide), Markup(figure.narrow)) for figure in drawn.figures],
        legend=[(Markup(mark), name) for mark, name in drawn.legend],
        filters=_filters(table.rows),
        columns={name: (kind_of(name), numeric) for name, numeric in columns_of(table).items()},
        entries=found,
    )


def _key(row: Row) -> RowName:
    return row.result.problem, row.result.solution, row.result.shape


def _about(rows: Sequence[Row], files: str) -> str:
    """Returns one line: where the results come from, the devices, and the shape that all rows share."""
    machines = (known.gpu or known.cpu for row in rows if (known := row.result.environment) is not None)
    shapes = {row.result.shape for row in rows}
    parts = [files, ", ".join(dict.fromkeys(map(one_line, filter(None, machines)))),
             ", ".join(sorted({one_line(row.result.device) for row in rows})),
             f"shape {one_line(shapes.pop())}" if len(shapes) == 1 else ""]
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def _remarks(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each machine with its versions, and its measured peaks."""
    found = []
    for row in rows:
        if (known := row.result.environment) is not None:
            facts = (known.gpu or known.cpu, known.driver and f"driver {known.driver}",
                     known.cuda and f"CUDA {known.cuda}", f"torch {known.torch}", f"inlinebench {known.harness}")
            found.append(" · ".join(one_line(fact) for fact in facts if fact))
    peaks = {row.result.environment.peaks for row in rows if row.result.environment is not None}
    if len(peaks) == 1 and (measured := peaks.pop()):
        found.append(f"Measured peaks: {one_line(measured)}")
    return list(dict.fromkeys(filter(None, found)))


def _counts(rows: Sequence[Row]) -> list[tuple[Verdict, int]]:
    counts = Counter(row.result.verdict for row in rows)
    return [(verdict, counts[verdict]) for verdict in Verdict if counts[verdict]]


def _change_counts(found: Sequence[Entry]) -> dict[Change, int]:
    counts = Counter(entry.change for entry in found)
    return {change: counts[change] for change in Change if counts[change]}


def _summary(results: Sequence[Result]) -> list[list[str]]:
    """Returns the summary of each solution name, below a row of headers. Columns for times need a result with times."""
    rows = [["solution", "tried", "passed", "mean speedup", *(f"fast_{p:g}" for p in THRESHOLDS)]]
    for entry in summary(results):
        speedup = ABSENT if entry.speedup is None else significant(entry.speedup)
        rows.append([summary_label(entry), str(entry.tried), str(entry.passed), speedup,
                     *(percent(share) for share in entry.fast.values())])
    timed = any(device_timing(result) is not None for result in results)
    return rows if timed else [row[:3] for row in rows]


def _filters(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Returns the choices of each filter by name. A filter needs at least two choices."""
    found = {
        name: list(dict.fromkeys(filter(None, (getattr(row, name) for row in rows))))
        for name in ("level", "shape", "device")
    }
    return {name: values for name, values in found.items() if len(values) > 1}
