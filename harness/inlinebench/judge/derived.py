"""What is special about a derived shape: which constants are left to try, and what a result says about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inlinebench.problem.probe.records import CannotRun
from inlinebench.problem.shapes.constants import is_no_larger
from inlinebench.results.result import Result, Verdict

NEW_LINE = "\n"


def smaller_ones(shapes: Iterable[Mapping[str, Any]], limit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns those of several derived shapes that are nowhere larger than one that took too much time or memory."""
    return [shape for shape in shapes if is_no_larger(shape, limit)]


def last_of(failures: Sequence[CannotRun]) -> CannotRun:
    """Returns the last failure. If it is a limit of this machine, its reason also has why the first shape failed."""
    first, last = failures[0], failures[-1]
    if not last.beyond_limits or first.beyond_limits:
        return last
    return replace(last, reason=f"{last.reason}; at derived shapes: {first.reason}")


def at_derived(result: Result, constants: Mapping[str, Any]) -> Result:
    """Returns a result with the constants of its derived shape, which the reason of a failure names.

    Without constants it is unchanged: the file was evaluated as written, because the reference runs no other way.
    """
    if not constants:
        return result
    named = tuple(f"{name}={value}" for name, value in constants.items())
    found = replace(result, constants=named)
    if not found.failed_derived:
        return found
    return replace(found, reason=f"at the derived shape {', '.join(named)}: {result.reason}")


def confirmed(failed: Result, nearer: Result) -> Result:
    """Returns the result that counts of a failure at a derived shape and of what the same solution did with sizes that
    are nearer to those of the file. It passes if it passed with these."""
    if nearer.verdict is Verdict.PASSED and nearer.check is not None:
        note = f"{failed.verdict} with smaller sizes: {failed.reason.partition(NEW_LINE)[0]}"
        return replace(nearer, check=replace(nearer.check, notes=(*nearer.check.notes, note)))
    if not nearer.failed_derived or nearer.constants is None:
        return failed
    first, end, others = failed.reason.partition(NEW_LINE)
    return replace(failed, reason=f"{first}; also {nearer.verdict} at {', '.join(nearer.constants)}{end}{others}")
