"""Results as CSV: one line for each result, flat columns with units in their names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

from inlinebench.foreign import one_line
from inlinebench.results.result import Check, Environment, Result, Verdict
from inlinebench.results.times import Roofline, Spread, Timing

LONGEST = 2000
"""The most characters of a text."""
Value = str | int | float | None
_FORMULA = re.compile(r"\s*['=+\-@\uff1d\uff0b\uff0d\uff20]")
"""The first character of a formula in a spreadsheet, in ASCII or full width, or an apostrophe."""

_NOTHING = Result("", "", "", "", Verdict.SKIPPED, reason="none")
"""A result that shows all columns but those of baselines."""


def table(results: Sequence[Result]) -> str:
    """Returns a header and a line for each result, in the given order. Absent values are empty cells.

    Texts are quoted and have one line. A text that begins like a formula, or with an apostrophe, gets an apostrophe in
    front (`'@reference`), so that a spreadsheet does not evaluate it; programs must remove it. Logs and kernels are
    left out, and so are speedups on the CPU. Columns of passes and of baselines (`over_NAME_...`) come last.
    """
    rows = [_row(result) for result in results]
    columns = dict.fromkeys([*_row(_NOTHING), *(name for row in rows for name in row)])
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([guarded(name) for name in columns])
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return file.getvalue()


def guarded(text: str) -> str:
    """Returns `text` in one line, guarded against evaluation as a formula by a spreadsheet."""
    line = one_line(text, LONGEST)
    return f"'{line}" if _FORMULA.match(line) else line


def _cell(value: Value) -> Value:
    return guarded(value) if isinstance(value, str) else value


def _row(result: Result) -> dict[str, Value]:
    """The values of a result by column."""
    build, kernels, repeats, memory = result.build, result.kernels, result.repeats, result.memory
    return {
        "problem": result.problem,
        "solution": result.solution,
        "shape": result.shape,
        "device": result.device,
        "level": result.level,
        "weight": result.weight,
        "verdict": str(result.verdict),
        "reason": result.reason,
        **_check(result.check),
        **_times(result.timing, result.times_are_comparable),
        "memory_bytes": memory.solution_bytes if memory else None,
        "memory_outside_allocator_bytes": memory.outside_allocator_bytes if memory else None,
        "reference_memory_bytes": memory.reference_bytes if memory else None,
        "own_kernels_share": kernels.own_share if kernels else None,
        "repeated_calls": repeats.calls if repeats else None,
        "bitwise_equal_calls": repeats.equal if repeats else None,
        "build_s": build.seconds if build else None,
        "build_cached": _yes(build.cached) if build else None,
        "seed": None if result.seed is None else str(result.seed),  # a spreadsheet would round a long number
        **_environment(result.environment),
        **(_passes(result.timing) if result.timing and result.times_are_comparable else {}),
        **(_baselines(result.timing) if result.timing and result.times_are_comparable else {}),
    }


def _check(check: Check | None) -> dict[str, Value]:
    return {
        "checked_calls": check.calls if check else None,
        "worst_error": check.worst_error if check else None,
        "tolerance": check.tolerance if check else None,
        "max_abs_error": check.max_abs_error if check else None,
        "rel_l2_error": check.rel_l2_error if check else None,
        "reference_rel_l2_error": check.reference_rel_l2_error if check else None,
        "oracle": check.oracle if check else None,
        "weights": check.weights if check else None,
        "notes": "; ".join(check.notes) if check else None,
    }


def _times(timing: Timing | None, comparable: bool) -> dict[str, Value]:
    gpu = timing.gpu if timing else None
    return {
        **_spread("reference", "_ms", timing.reference_ms if timing else None, ("median", "q1", "q3")),
        **_spread("solution", "_ms", timing.solution_ms if timing else None, ("median", "q1", "q3")),
        **_spread("wall", "_ms", timing.wall_ms if timing else None, ("median", "q1", "q3")),
        "first_call_ms": timing.first_call_ms if timing else None,
        "load_ms": timing.load_ms if timing else None,
        **_spread("speedup", "", timing.speedup if timing and comparable else None, ("median", "low", "high")),
        "timed_calls": timing.solution_ms.calls if timing else None,
        "stopped_by": timing.stopped_by if timing else None,
        "flags": "; ".join(timing.flags) if timing else None,
        **_roofline(timing.roofline if timing else None),
        "empty_ms": timing.empty_ms if timing else None,
        "reference_overhead_ms": timing.reference_overhead_ms if timing else None,
        "solution_overhead_ms": timing.solution_overhead_ms if timing else None,
        "sm_clock_mhz": gpu.sm_mhz.median if gpu else None,
        "memory_clock_mhz": gpu.memory_mhz.median if gpu else None,
        "temperature_c": gpu.temperature_c if gpu else None,
        "power_w": gpu.power_w if gpu else None,
    }


def _spread(name: str, unit: str, spread: Spread | None, ends: tuple[str, str, str]) -> dict[str, Value]:
    figures = (spread.median, spread.low, spread.high) if spread else (None, None, None)
    return {f"{name}_{end}{unit}": figure for end, figure in zip(ends, figures, strict=True)}


def _roofline(roofline: Roofline | None) -> dict[str, Value]:
    return {
        "roofline_bytes": roofline.bytes if roofline else None,
        "roofline_operations": roofline.flops if roofline else None,
        "roofline_memory_ms": roofline.memory_ms if roofline else None,
        "roofline_compute_ms": roofline.compute_ms if roofline else None,
        "roofline_ms": roofline.ms if roofline else None,
        "roofline_binds": roofline.binds if roofline else None,
    }


def _environment(found: Environment | None) -> dict[str, Value]:
    return {
        "gpu": found.gpu if found else None,
        "driver": found.driver if found else None,
        "cuda": found.cuda if found else None,
        "cpu": found.cpu if found else None,
        "torch": found.torch if found else None,
        "inlinebench": found.harness if found else None,
        "tf32": _yes(found.tf32) if found else None,
    }


def _passes(timing: Timing) -> Mapping[str, Value]:
    columns: dict[str, Value] = {}
    for each in timing.passes:
        columns |= {f"{each.name}_reference_ms": each.reference_ms.median,
                    f"{each.name}_solution_ms": each.solution_ms.median}
        columns |= _spread(f"{each.name}_speedup", "", each.speedup, ("median", "low", "high"))
    return columns


def _baselines(timing: Timing) -> Mapping[str, Value]:
    columns: dict[str, Value] = {}
    for each in timing.baselines:
        columns[f"over_{each.name}_ms"] = each.ms.median
        columns |= _spread(f"over_{each.name}_speedup", "", each.speedup, ("median", "low", "high"))
    return columns


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
