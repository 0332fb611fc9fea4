"""Feedback: one result as a short plain text for a person or a model that improves the solution.

All its facts are in the result. Foreign text is quoted.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from inlinebench.foreign import BAR, lines, one_line
from inlinebench.report import accuracy, drawn_sizes, mismatches, repeats
from inlinebench.report.bottlenecks import bottlenecks
from inlinebench.report.launches import described
from inlinebench.report.terminal.log_end import TRACEBACK, end_of_log
from inlinebench.report.terminal.table import NO_SPEEDUP, lost
from inlinebench.report.text import interval, significant
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Mismatch, Result, Verdict
from inlinebench.results.times import PassTimes, Roofline, Spread, Timing

MOST_LINES, MOST_CHARACTERS = 60, 6000
LONGEST_LINE, LONGEST_NAME = 240, 80
KERNELS, REMARKS = 5, 8
LOG_LINES, REASON_LINES, LITTLE_LOG = 15, 20, 6
CUT = "… (cut)"


def feedback(result: Result, width: int | None = None) -> str:
    """Returns at most 60 lines and 6,000 characters, the most important first, without a newline at the end.

    With `width`, the columns of a terminal, longer lines are wrapped, except for quoted lines of code.
    """
    name = f"{one_line(result.problem, LONGEST_NAME)}/{one_line(result.solution, LONGEST_NAME)}"
    where = f"shape {one_line(result.shape, LONGEST_NAME)}, on {one_line(result.device, LONGEST_NAME)}"
    where += ", forward and backward" * bool(result.backward)
    lines = [f"{name} ({where}): {result.verdict}", *_drawn(result)]
    if result.verdict is Verdict.PASSED:
        lines += _passed(result)
    elif result.verdict is Verdict.BUILD_FAILED:
        lines += _build_failed(result)
    elif result.mismatch is not None:
        lines += _wrong(result, result.mismatch)
    else:
        lines += _failed(result)
    text = _fit(lines)
    return text if width is None else "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _drawn(result: Result) -> Iterator[str]:
    """Lines about the sizes that were drawn."""
    if result.fuzz is None:
        return
    yield f"drawn sizes that passed: {drawn_sizes.share(result.fuzz)}; refused by the reference: {result.fuzz.refused}"
    if result.fuzz.failed_at is not None and result.fuzz.drawn is not None:
        first = "" if result.fuzz.drawn == result.fuzz.failed_at else (
            f", found from {one_line(', '.join(result.fuzz.drawn))}")
        yield f"the smallest size that fails: {one_line(', '.join(result.fuzz.failed_at))}{first}"


def _fit(lines: Iterable[str]) -> str:
    """Joins as many lines as the limits allow."""
    kept, room = list[str](), MOST_CHARACTERS - len(CUT) - 1
    for line in lines:
        text = line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
        if len(text) + 1 > room or len(kept) == MOST_LINES - 1:
            return "\n".join([*kept, CUT])
        kept.append(text)
        room -= len(text) + 1
    return "\n".join(kept)


def _wrapped(line: str, width: int) -> str:
    """Wraps a line between words, with continuations below its text. CI services take an indented `::` for a command
    as well, so a line with a word that begins with it stays as it is, and so does a quoted line that is indented."""
    if line.startswith(f"{BAR} ") or " ::" in line or len(line) <= width:
        return line
    text = line.removeprefix("  - ").lstrip()
    indent = BAR + "  " if line.startswith(BAR) else (len(line) - len(text)) * " " or "  "
    return textwrap.fill(line, max(width, 20), subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def _wrong(result: Result, found: Mismatch) -> Iterator[str]:
    yield mismatches.heading(found)
    if result.check is not None and result.check.calls > 1:
        yield f"calls that matched before: {result.check.calls - 1}"
    yield mismatches.largest(found)
    yield from (f"  - {pattern}" for pattern in mismatches.patterns(found))
    yield from _elements(found)
    yield from _weights(result)
    yield from _remarks("note", result.check.notes if result.check else ())
    yield from _seed(result)
    yield from _end_of_log(result, LITTLE_LOG, traceback=False)


def _elements(found: Mismatch) -> Iterator[str]:
    shown = mismatches.elements(found)
    rows = [("index", "expected", "got"), *((each.index, each.expected, each.got) for each in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row, worst in zip(rows, (False, *(each.worst for each in shown)), strict=True):
        line = "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield line.rstrip() + ("  (worst)" if worst else "")


def _weights(result: Result) -> Iterator[str]:
    if result.check is not None:
        yield f"weights: {one_line(result.check.weights)}; oracle: {one_line(result.check.oracle)}"


def _seed(result: Result) -> Iterator[str]:
    if result.seed is not None:
        yield f"--seed {result.seed} draws the same inputs again"


def _build_failed(result: Result) -> Iterator[str]:
    yield from _quoted(result.reason, REASON_LINES)
    if any(line.startswith(("cpp_sources", "cuda_sources")) for line in result.reason.split("\n")):
        yield "Line numbers refer to the strings passed as cpp_sources and cuda_sources, counted from 1."
    else:
        compilers = (result.log or "").partition(TRACEBACK)[0]  # the traceback only repeats that the build failed
        yield from _end_of_log(replace(result, log=compilers), LITTLE_LOG)


def _failed(result: Result) -> Iterator[str]:
    """Lines for failures without values to show."""
    yield from _quoted(result.reason, LOG_LINES)
    if result.check is not None and result.verdict is not Verdict.WRONG:
        yield f"calls that matched before: {result.check.calls}"
    if result.verdict.advice:
        yield result.verdict.advice
    yield from _kernels(result)
    yield from _seed(result)
    yield from _end_of_log(result, LOG_LINES)


def _end_of_log(result: Result, most: int, *, traceback: bool = True) -> Iterator[str]:
    last = end_of_log(result.log or "", most, LONGEST_LINE - len(BAR), traceback=traceback)
    if last:
        yield "the end of the log:"
        yield from (f"{BAR}{line}" for line in last)


def _quoted(reason: str, most: int) -> Iterator[str]:
    """Yields the lines of a reason that are not blank, at most `most` of them."""
    found = [f"{BAR}{line}" for line in lines(reason, LONGEST_LINE - len(BAR)) if line]
    yield from found[:most]
    if len(found) > most:
        yield CUT


def _passed(result: Result) -> Iterator[str]:
    check, timing = result.check, result.timing if result.times_are_comparable else None
    if timing is not None:
        yield from lost(result)
        yield from _times(timing)
    elif not result.times_are_comparable:
        yield NO_SPEEDUP
    for slow in bottlenecks(result):
        yield f"why it is slow: {slow.name}: {slow.evidence}."
        yield f"  What to do: {slow.advice}."
    if result.memory is not None:
        yield _memory(result.memory)
    yield from _kernels(result)
    if check is not None:
        error = "" if check.worst_error is None else f", largest error {check.worst_error:.3g}"
        yield f"values: {check.calls} calls matched{error}, tolerance {check.tolerance:.3g}"
        for found in check.accuracy:
            yield (f"accuracy of {one_line(found.what)}: {accuracy.beside_reference(found)}; errors in sigma (median / "
                   f"99.9% / worst): {accuracy.in_sigmas(found.solution)}; "
                   f"PyTorch's: {accuracy.in_sigmas(found.reference)}")
        yield from _weights(result)
    if result.repeats is not None:
        yield from repeats.sentences(result.repeats)
    if timing is not None:
        yield from _remarks("flag", timing.flags)
    yield from _remarks("note", check.notes if check else ())


def _times(timing: Timing) -> Iterator[str]:
    yield f"speedup over the reference: {interval(timing.speedup)}"
    for baseline in timing.baselines:
        yield f"speedup over {one_line(baseline.name)}: {interval(baseline.speedup)} ({_ms(baseline.ms)})"
    calls = f" over {timing.solution_ms.calls} calls" if timing.solution_ms.calls else ""
    yield f"solution: {_ms(timing.solution_ms)}; reference: {_ms(timing.reference_ms)} (medians with quartiles{calls})"
    for each in timing.passes:
        yield f"  {one_line(each.name)} alone: {_pass(each)}"
    if timing.wall_ms is not None:
        yield f"in a Python loop, including launches: {_ms(timing.wall_ms)}"
    if timing.first_call_ms is not None:
        loading = "" if timing.load_ms is None else f"; loading the solution: {significant(timing.load_ms)} ms"
        yield f"first call in the process, by the host: {significant(timing.first_call_ms)} ms{loading}"
    if timing.roofline is not None:
        yield from _roofline(timing.roofline, timing.solution_ms.median)


def _memory(memory: Memory) -> str:
    outside = (f", of which {significant(memory.outside_allocator_bytes / MIB)} MiB are not from PyTorch's allocator"
               if memory.outside_allocator_bytes else "")
    return (f"memory of a call beyond inputs, outputs and weights: {significant(memory.solution_mib)} MiB{outside}; "
            f"reference: {significant(memory.reference_mib)} MiB")


def _pass(found: PassTimes) -> str:
    baselines = "".join(f", {interval(each.speedup)} over {one_line(each.name)}" for each in found.baselines)
    return (f"speedup {interval(found.speedup)}{baselines}; solution {_ms(found.solution_ms)}, "
            f"reference {_ms(found.reference_ms)}")


def _roofline(roofline: Roofline, took_ms: float) -> Iterator[str]:
    reached = f"; the solution reaches {roofline.ms / took_ms:.1%} of it" if took_ms > 0 else ""
    yield f"roofline: {significant(roofline.ms)} ms, bound by {one_line(roofline.binds)}{reached}"
    yield (f"  memory: {roofline.bytes:.4g} bytes, {significant(roofline.memory_ms)} ms; "
           f"compute: {roofline.flops:.4g} operations, {significant(roofline.compute_ms)} ms")


def _kernels(result: Result) -> Iterator[str]:
    kernels = result.kernels
    if kernels is None:
        return
    sm = result.environment.multiprocessors if result.environment else None
    yield f"own kernels: {kernels.own_share:.1%} of the GPU's time in a call"
    for part in kernels.passes:
        yield f"  {one_line(part.name)}: {part.ms:.4g} ms, {part.own_share:.1%} in own kernels"
    for each in kernels.top[:KERNELS]:
        yield (f"  {significant(each.ms)} ms  {each.share:.1%}  {one_line(each.origin, LONGEST_NAME)}  "
               f"{one_line(each.name, LONGEST_NAME)}")
        if text := described(each, sm):
            yield f"    {text}"


def _remarks(kind: str, texts: Sequence[str]) -> Iterator[str]:
    yield from (f"{kind}: {one_line(text)}" for text in texts[:REMARKS])


def _ms(spread: Spread) -> str:
    return f"{significant(spread.median)} ms [{significant(spread.low)}, {significant(spread.high)}]"
