"""The table of a run, and below it why whatever didn't pass did not."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.records.natural_sort import natural
from inlinebench.records.result import Check, Result, Timing, Verdict
from inlinebench.report.text import ABSENT, grid, interval, one_line, quoted, significant

NO_SPEEDUP = "No speedup on the CPU: only a GPU can say how fast a CUDA kernel is."

_COLUMNS = {
    "problem": "left",
    "solution": "left",
    "shape": "left",
    "verdict": "left",
    "error / tolerance": "left",
    "reference ms": "decimal",
    "solution ms": "decimal",
    "wall ms": "decimal",
    "speedup": "left",
    "% of roofline": "right",
    "own kernels": "right",
}
"""Header and alignment; the speedups over further baselines stand behind the first."""
_ONLY_IF_KNOWN = ("reference ms", "solution ms", "wall ms", "speedup", "% of roofline", "own kernels")
"""Columns that are left out where no row has anything to say there."""


def table(results: Sequence[Result], verbose: bool = False) -> str:
    """Every result as a row, by problem, solution and shape; then a line for each that didn't pass, with its reason.

    Times are medians in milliseconds: on the device, and of a call in a loop in Python (`wall`). A speedup has the ends
    of its interval behind it. `% of roofline` is the roofline time over the solution's. `own kernels`
    is the share of the GPU's time in kernels that the solution brought along. The column of shapes is there if there is
    more than one shape; a single one that isn't `full` is named below, with remarks on rows that passed. Failures come
    last. The CPU's times, which say nothing of a GPU's, are there if `verbose`.
    """
    if not results:
        return "Nothing was evaluated."
    ordered = sorted(results, key=lambda each: (natural(each.problem), natural(each.solution), each.shape))
    shapes = {result.shape for result in ordered}
    cells = [cells_of(result, verbose) for result in ordered]
    known = columns_of(ordered)
    silent = {name for name in _ONLY_IF_KNOWN if all(row[name] == ABSENT for row in cells)}
    columns = [name for name in known if name not in silent and (name != "shape" or len(shapes) > 1)]
    rows = [[row.get(name, ABSENT) for name in columns] for row in cells]
    blocks = [
        grid(columns, rows, [known[name] for name in columns]),
        "\n".join(_notes(ordered, shapes)),
        "\n".join(line for result in ordered for line in remarks(result, len(shapes) > 1)),
        "\n".join(failure(result, len(shapes) > 1) for result in ordered if result.verdict is not Verdict.PASSED),
    ]
    return "\n\n".join(filter(None, blocks))


def failure(result: Result, with_shape: bool) -> str:
    """`problem/solution (shape): verdict: reason`, of the reason only its first line and what that quotes."""
    lines = quoted(result.reason) or ["no reason was given"]
    return "\n".join([f"{_name(result, with_shape)}: {result.verdict}: {lines[0]}", *lines[1:]])


def remarks(result: Result, with_shape: bool) -> list[str]:
    """What there is to know of a result that passed, with its name."""
    return [f"{_name(result, with_shape)}: {text}" for text in remarks_on(result)]


def remarks_on(result: Result) -> list[str]:
    """What there is to know of a result that passed: flags on its times, and notes on what was converted."""
    if result.verdict is not Verdict.PASSED:
        return []
    flags = result.timing.flags if result.timing and result.device != "cpu" else ()
    return [one_line(text) for text in (*flags, *(result.check.notes if result.check else ()))]


def _name(result: Result, with_shape: bool) -> str:
    shape = f" ({one_line(result.shape)})" if with_shape else ""
    return f"{one_line(result.problem)}/{one_line(result.solution)}{shape}"


def _notes(results: Sequence[Result], shapes: set[str]) -> list[str]:
    notes = []
    if len(shapes) == 1 and shapes != {"full"}:
        notes.append(f"Shape: {one_line(min(shapes))}")
    if any(result.device == "cpu" for result in results):
        notes.append(NO_SPEEDUP)
    return notes


def columns_of(results: Sequence[Result]) -> dict[str, str]:
    """The columns with one for each baseline that a result was compared with."""
    found = [f"over {each.name}" for result in results if result.timing for each in result.timing.baselines]
    columns = dict(_COLUMNS)
    behind = {name: columns.pop(name) for name in ("% of roofline", "own kernels")}
    return {**columns, **dict.fromkeys(found, "left"), **behind}


def cells_of(result: Result, verbose: bool) -> dict[str, str]:
    timing = result.timing if result.device != "cpu" or verbose else None
    baselines = {f"over {each.name}": interval(each.speedup) for each in timing.baselines} if timing else {}
    return {
        "problem": one_line(result.problem),
        "solution": one_line(result.solution),
        "shape": one_line(result.shape),
        "verdict": str(result.verdict),
        "error / tolerance": _error(result.check),
        "reference ms": significant(timing.reference_ms.median) if timing else ABSENT,
        "solution ms": significant(timing.solution_ms.median) if timing else ABSENT,
        "speedup": interval(timing.speedup) if timing and result.device != "cpu" else ABSENT,
        "wall ms": significant(timing.wall_ms.median) if timing and timing.wall_ms else ABSENT,
        "% of roofline": _share_of_roofline(timing),
        **baselines,
        "own kernels": f"{result.kernels.own_share:.1%}" if result.kernels else ABSENT,
    }


def _share_of_roofline(timing: Timing | None) -> str:
    """The roofline time over the time; a call of nothing has neither."""
    if timing is None or timing.roofline is None or timing.solution_ms.median <= 0:
        return ABSENT
    return f"{timing.roofline.ms / timing.solution_ms.median:.1%}"


def _error(check: Check | None) -> str:
    """The worst error against what was allowed, with digits enough to show which of the two is the larger."""
    if check is None or check.worst_error is None:
        return ABSENT
    error, tolerance = max(check.worst_error, 0.0), check.tolerance
    shown = "0" if error == 0 else f"{error:.1e}"
    for digits in range(2, 18):
        if (float(shown) <= tolerance) == (error <= tolerance):
            break
        shown = f"{error:.{digits}e}"
    return f"{shown} / {_short(tolerance)}"


def _short(tolerance: float) -> str:
    """`1e-04`, `2.5e-04`, `0`: an exponent, and no digit that says nothing."""
    mantissa, letter, exponent = f"{tolerance:.2e}".partition("e")
    if "." not in mantissa:
        return mantissa
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}{letter}{exponent}" if tolerance else "0"
