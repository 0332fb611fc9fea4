"""The table of a run's results, with remarks and the reasons of failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.report import repeats
from inlinebench.report.comparison import Change, by_interval
from inlinebench.report.terminal.screen import PLAIN, Screen
from inlinebench.report.text import ABSENT, brief_reason, grid, interval, significant, visible_length
from inlinebench.results.library import over_library
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.results.times import PASSES, Baseline, Timing

NO_SPEEDUP = "No speedup on the CPU: times on the CPU do not predict a GPU's."

_COLUMNS = {
    "problem": "left",
    "solution": "left",
    "shape": "left",
    "verdict": "left",
    "error / tolerance": "left",
    "bitwise equal": "left",
    "reference ms": "decimal",
    "solution ms": "decimal",
    "wall ms": "decimal",
    "speedup": "left",
    **dict.fromkeys(PASSES, "left"),
    "% of roofline": "right",
    "memory MiB": "decimal",
    "own kernels": "right",
}
"""Headers and alignments. Speedups over further baselines come after `speedup` and those of the passes."""
_ONLY_IF_KNOWN = ("bitwise equal", "reference ms", "solution ms", "wall ms", "speedup", *PASSES, "% of roofline",
                  "memory MiB", "own kernels")
"""Columns that are left out if no row has a value."""


_DROPPED_FIRST = ("own kernels", "memory MiB", "bitwise equal", "wall ms", *PASSES[::-1], "% of roofline",
                  "error / tolerance", "reference ms", "solution ms")
"""The columns that are left out one by one, in this order, if the table is wider than the terminal. Further baselines
are left out after `own kernels`, the last one first."""


def table(results: Sequence[Result], verbose: bool = False, screen: Screen = PLAIN) -> str:
    """Returns a table with a row for each result, sorted by problem, solution and shape, then remarks, then failures.

    Times are medians in ms: on the device, and of a call in a Python loop (`wall`). A speedup is followed by its
    interval. `% of roofline` is the roofline time over the solution's time. `memory MiB` is the solution's peak memory
    in a call. `own kernels` is the share of the GPU's time in kernels of the solution. `bitwise equal` is how many
    calls on the same inputs had the same bits. `forward` and `backward` are the speedups of each pass alone. Shapes
    have a column if there are several; a single shape other than `full` is named below the table. With `verbose`, times
    on the CPU are shown, which do not predict a GPU's. A table that is wider than the screen loses columns; a remark
    says which.
    """
    if not results:
        return "Nothing was evaluated."
    ordered = sorted(results, key=lambda each: (natural(each.problem), natural(each.solution), each.shape))
    shapes = {result.shape for result in ordered}
    cells = [cells_of(result, verbose) for result in ordered]
    known = columns_of(ordered)
    silent = {name for name in _ONLY_IF_KNOWN if all(row[name] == ABSENT for row in cells)}
    columns = [name for name in known if name not in silent and (name != "shape" or len(shapes) > 1)]
    for row, result in zip(cells, ordered, strict=True):
        row["verdict"] = screen.paint(result.verdict)
    columns, left_out = _fitting(columns, cells, screen.width)
    blocks = [
        _grid(columns, cells),
        "\n".join([*_notes(ordered, shapes), *_missing(left_out)]),
        "\n".join(line for result in ordered for line in remarks(result, len(shapes) > 1)),
        "\n".join(failure(result, len(shapes) > 1, screen) for result in ordered
                  if result.verdict is not Verdict.PASSED),
    ]
    return "\n\n".join(filter(None, blocks))


def _grid(columns: Sequence[str], cells: Sequence[Mapping[str, str]]) -> str:
    rows = [[row.get(name, ABSENT) for name in columns] for row in cells]
    return grid(columns, rows, [_COLUMNS.get(name, "left") for name in columns])


def _fitting(
    columns: Sequence[str], cells: Sequence[Mapping[str, str]], width: int | None
) -> tuple[list[str], list[str]]:
    """Returns the columns that fit into a width, and those that are left out for it."""
    kept, left_out = list(columns), list[str]()
    baselines = [name for name in columns if name not in _COLUMNS]
    for name in (_DROPPED_FIRST[0], *reversed(baselines), *_DROPPED_FIRST[1:]):
        if width is None or max(map(visible_length, _grid(kept, cells).splitlines())) <= width:
            break
        if name in kept:
            kept.remove(name)
            left_out.append(name)
    return kept, left_out


def _missing(left_out: Sequence[str]) -> list[str]:
    return [f"Columns omitted because the terminal is narrow: {', '.join(left_out)}"] if left_out else []


def failure(result: Result, with_shape: bool, screen: Screen = PLAIN) -> str:
    """Returns `problem/solution (shape): verdict: reason`, with the first line of the reason and what it quotes."""
    reason = brief_reason(result.reason) or "no reason given"
    return f"{_name(result, with_shape)}: {screen.paint(result.verdict)}: {reason}"


def remarks(result: Result, with_shape: bool) -> list[str]:
    """Returns the remarks on a passed result, each with its name."""
    return [f"{_name(result, with_shape)}: {text}" for text in remarks_on(result)]


def remarks_on(result: Result) -> list[str]:
    """Returns the remarks on a passed result: whether the library is faster, flags of its times, which bits vary, notes
    of its check."""
    if result.verdict is not Verdict.PASSED:
        return []
    flags = result.timing.flags if result.timing and result.times_are_comparable else ()
    varies = repeats.findings(result.repeats) if result.repeats else ()
    return [one_line(text) for text in (*lost(result), *flags, *varies, *(result.check.notes if result.check else ()))]


def lost(result: Result) -> list[str]:
    """Returns a remark if the library solution is significantly faster."""
    found = over_library(result)
    if found is None or by_interval(found.speedup) is not Change.SLOWER:
        return []
    return [f"slower than the library solution: {interval(found.speedup)} times as fast"]


def _name(result: Result, with_shape: bool) -> str:
    shape = f" ({one_line(result.shape)})" if with_shape else ""
    return f"{one_line(result.problem)}/{one_line(result.solution)}{shape}"


def _notes(results: Sequence[Result], shapes: set[str]) -> list[str]:
    notes = []
    if found := sorted({one_line(result.problem) for result in results if result.backward}, key=natural):
        named = f" of {', '.join(found)}" if any(not result.backward for result in results) else ""
        notes.append(f"Calls{named} are forward and backward: gradients are compared, and times cover both.")
    if len(shapes) == 1 and shapes != {"full"}:
        notes.append(f"Shape: {one_line(min(shapes))}")
    if any(not result.times_are_comparable for result in results):
        notes.append(NO_SPEEDUP)
    if failed := sum(result.failed_derived for result in results):
        notes.append(f"{failed} failed at a derived shape, for which the solution may not be written. They affect the "
                     "exit status only with --strict; --shape full evaluates the file as written.")
    return notes


def columns_of(results: Sequence[Result]) -> dict[str, str]:
    """Returns the alignment of each column by name, with a column for each baseline of any result."""
    found = [over(each) for result in results if result.timing for each in result.timing.baselines]
    columns = dict(_COLUMNS)
    last = {name: columns.pop(name) for name in ("% of roofline", "memory MiB", "own kernels")}
    return {**columns, **dict.fromkeys(found, "left"), **last}


def over(baseline: Baseline) -> str:
    """Returns the name of a baseline's column."""
    return f"over {one_line(baseline.name)}"


def cells_of(result: Result, verbose: bool) -> dict[str, str]:
    """Returns the texts of a result by column. Times on the CPU are absent unless `verbose`."""
    timing = result.timing if result.times_are_comparable or verbose else None
    baselines = {over(each): interval(each.speedup) for each in timing.baselines} if timing else {}
    passes = timing.passes if timing and result.times_are_comparable else ()
    return {
        "problem": one_line(result.problem),
        "solution": one_line(result.solution),
        "shape": one_line(result.shape),
        "verdict": str(result.verdict),
        "error / tolerance": _error(result.check),
        "bitwise equal": ABSENT if result.repeats is None else repeats.share(result.repeats),
        "reference ms": significant(timing.reference_ms.median) if timing else ABSENT,
        "solution ms": significant(timing.solution_ms.median) if timing else ABSENT,
        "speedup": interval(timing.speedup) if timing and result.times_are_comparable else ABSENT,
        "wall ms": significant(timing.wall_ms.median) if timing and timing.wall_ms else ABSENT,
        "% of roofline": _share_of_roofline(timing),
        **dict.fromkeys(PASSES, ABSENT),
        **{each.name: interval(each.speedup) for each in passes},
        **baselines,
        "memory MiB": significant(result.memory.solution_mib) if result.memory else ABSENT,
        "own kernels": f"{result.kernels.own_share:.1%}" if result.kernels else ABSENT,
    }


def _share_of_roofline(timing: Timing | None) -> str:
    """The roofline time over the solution's time; absent if that is 0."""
    if timing is None or timing.roofline is None or timing.solution_ms.median <= 0:
        return ABSENT
    return f"{timing.roofline.ms / timing.solution_ms.median:.1%}"


def _error(check: Check | None) -> str:
    """The worst error and the tolerance, with enough digits to show which one is larger."""
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
    """Formats a tolerance with an exponent and without trailing zeros: `1e-04`, `2.5e-04`, `0`."""
    mantissa, letter, exponent = f"{tolerance:.2e}".partition("e")
    if "." not in mantissa:
        return mantissa
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}{letter}{exponent}" if tolerance else "0"
