"""Renders the page from its template.

The page shows untrusted text: names, reasons, logs, sources. The template engine sanitizes and escapes every text, no
result is embedded as data, and a Content Security Policy allows only the page's own script and style.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files

import jinja2
from markupsafe import Markup

from inlinebench.records.result import Verdict
from inlinebench.report.page.charts import Figure
from inlinebench.report.page.details import sections
from inlinebench.report.page.foreign import clean
from inlinebench.report.rows import Row, Table, summary_label
from inlinebench.report.terminal.summary import NOT_TRIED, THRESHOLDS, SolutionSummary, summary
from inlinebench.report.terminal.table import NO_SPEEDUP
from inlinebench.report.text import ABSENT, one_line, percent, significant


def render(table: Table, title: str, sources: Mapping[str, str], figures: Sequence[Figure]) -> str:
    """Returns the page of a table, with charts, and with source texts by `problem/solution`."""
    results = [row.result for row in table.rows]
    style, script = _own("page.css"), _own("page.js")
    return _environment().get_template("page.html").render(
        title=one_line(title),
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        remarks=_remarks(table.rows),
        verdicts=_counts(table.rows),
        tones={verdict: _tone(verdict) for verdict in Verdict},
        summary_columns=["solution", "tried", "passed", "mean speedup", *(f"fast_{p:g}" for p in THRESHOLDS)],
        summary_rows=[_summary_row(entry) for entry in summary(results)],
        filters=_filters(table.rows),
        columns=table.columns,
        rows=[(row, sections(row.result, _source(row, sources))) for row in table.rows],
        figures=[(figure, Markup(figure.wide), Markup(figure.narrow)) for figure in figures],
    )


def _environment() -> jinja2.Environment:
    """Returns an environment that sanitizes and escapes every value except Markup: charts, style and script."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("inlinebench.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else clean(str(value)),
    )


def _own(name: str) -> str:
    return files("inlinebench.report.page").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Returns the Content Security Policy: this script, this style, and no requests."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _source(row: Row, sources: Mapping[str, str]) -> str | None:
    return sources.get(f"{row.result.problem}/{row.result.solution}")


def _remarks(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each machine with its versions, and a line with the shape and device that all rows share."""
    found = []
    for row in rows:
        if (known := row.result.environment) is not None:
            facts = (known.gpu or known.cpu, known.driver and f"driver {known.driver}",
                     known.cuda and f"CUDA {known.cuda}", f"torch {known.torch}", f"inlinebench {known.harness}")
            found.append(" · ".join(one_line(fact) for fact in facts if fact))
    shapes, devices = ({getattr(row.result, name) for row in rows} for name in ("shape", "device"))
    common = [f"{name} {one_line(values.pop())}" for name, values in (("shape", shapes), ("device", devices))
              if len(values) == 1]
    found.append(" · ".join(common))
    if any(row.result.device == "cpu" for row in rows):
        found.append(NO_SPEEDUP)
    return list(dict.fromkeys(filter(None, found)))


def _counts(rows: Sequence[Row]) -> list[tuple[Verdict, int]]:
    counts = Counter(row.result.verdict for row in rows)
    return [(verdict, counts[verdict]) for verdict in Verdict if counts[verdict]]


def _tone(verdict: Verdict) -> str:
    """Returns the tone of a verdict: good, bad, or neutral if it says nothing about the solution."""
    if verdict is Verdict.PASSED:
        return "good"
    return "neutral" if verdict in NOT_TRIED else "bad"


def _summary_row(entry: SolutionSummary) -> list[str]:
    shares = [percent(share) for share in entry.fast.values()]
    speedup = ABSENT if entry.speedup is None else significant(entry.speedup)
    return [summary_label(entry), str(entry.tried), str(entry.passed), speedup, *shares]


def _filters(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Returns the choices of each filter by name. A filter needs at least two choices."""
    found = {
        name: list(dict.fromkeys(filter(None, (getattr(row, name) for row in rows))))
        for name in ("verdict", "level", "shape", "device")
    }
    return {name: values for name, values in found.items() if len(values) > 1}
