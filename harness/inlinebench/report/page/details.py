"""The details of a result, which the page shows when its row is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inlinebench.foreign import block
from inlinebench.report import accuracy, mismatches, repeats
from inlinebench.report.bottlenecks import bottlenecks
from inlinebench.report.launches import described
from inlinebench.report.page.source import SourceLine, excerpt
from inlinebench.report.page.source import lines as numbered
from inlinebench.report.terminal.log_end import TRACEBACK, end_of_log
from inlinebench.report.terminal.table import remarks_on
from inlinebench.report.text import ABSENT, significant
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Accuracy, Check, Environment, Kernels, Result, Verdict
from inlinebench.results.times import GpuState, PassTimes, Roofline, Spread, Timing

LOG_LINES, LOG_LINE = 20, 240
"""The part of a log that is shown before the rest."""
REASON_LINES, REASON_LINE = 12, 500
"""The part of a reason that is shown below its row. The details have the rest."""


@dataclass(frozen=True)
class Facts:
    """A heading and pairs of name and value."""

    heading: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Grid:
    """A heading and a small table. The first column has texts, the others have figures."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Listing:
    """A heading and a list of sentences."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class DetailBlock:
    """A heading and preformatted text."""

    heading: str
    text: str
    folded: bool
    """Whether the text is hidden until it is opened."""

    @property
    def size(self) -> str:
        """The number of lines, in words."""
        lines = len(self.text.splitlines())
        return "1 line" if lines == 1 else f"{lines} lines"


@dataclass(frozen=True)
class Code:
    """A heading and numbered lines of source."""

    heading: str
    lines: tuple[SourceLine, ...]


Section = Facts | Grid | Listing | DetailBlock | Code


@dataclass(frozen=True)
class Details:
    """What an opened row shows."""

    told: tuple[Section, ...]
    """What is known about a failure beyond its reason, or the notes on what passed."""
    excerpt: Code | None
    """The lines of the source that the reason names, with those around them."""
    facts: tuple[Section, ...]
    """Everything else, most important first. Unknown values are left out."""
    source: Code | None
    """The whole source."""


def details(result: Result, source: str | None, *, environment: bool) -> Details:
    """Returns the details of a result, whose solution has this source. `environment` shows where it was evaluated."""
    lines = () if source is None else numbered(source, result.reason, f"{result.solution}.py")
    near = excerpt(lines)
    return Details(tuple(_told(result)), Code("The lines that the reason names", near) if near else None,
                   tuple(_facts(result, environment)), Code("Source", lines) if lines else None)


def short_reason(result: Result) -> str:
    """Returns the reason, cut to a few lines."""
    lines = block(result.reason).strip("\n").split("\n")
    shown = [line if len(line) <= REASON_LINE else line[: REASON_LINE - 1] + "…" for line in lines[:REASON_LINES]]
    return "\n".join([*shown, "…"] if len(lines) > REASON_LINES else shown)


def _told(result: Result) -> Iterator[Section]:
    if result.verdict is Verdict.PASSED and (notes := remarks_on(result)):
        yield Listing("Notes", tuple(notes))
    if found := bottlenecks(result):
        yield Listing("Why it is slow", tuple(f"{each.name}: {each.evidence}. {each.advice}." for each in found))
    if (reason := block(result.reason).strip("\n")) != short_reason(result):
        yield DetailBlock("The whole reason", reason, False)
    if result.mismatch is not None:
        wrong = result.mismatch
        yield Listing("Values that differ", (mismatches.heading(wrong), mismatches.largest(wrong)))
        rows = tuple((each.index + (" (worst)" if each.worst else ""), each.expected, each.got)
                     for each in mismatches.elements(wrong))
        yield Grid("The first elements that differ", ("index", "expected", "got"), rows)
    if result.verdict in (Verdict.PASSED, Verdict.WRONG) or not result.log:
        return
    builds = result.verdict is Verdict.BUILD_FAILED
    log = result.log.partition(TRACEBACK)[0] if builds else result.log  # a traceback only repeats that a build failed
    if last := end_of_log(log, LOG_LINES, LOG_LINE, traceback=not builds):
        yield DetailBlock("The last lines of the compilers" if builds else "The last lines of the log",
                          "\n".join(last), False)


def _facts(result: Result, environment: bool) -> Iterator[Section]:
    if result.timing:
        yield from _timing(result.timing, result.times_are_comparable)
    if result.memory:
        yield Facts("Memory of a call beyond inputs, outputs and weights", _known(_memory(result.memory)))
    if result.kernels:
        yield _kernels(result.kernels)
        if launched := _launched(result.kernels, result.environment):
            yield Facts("Launches and counters", launched)
    if result.check:
        yield Facts("Check", _known(_check(result.check)))
        for found in result.check.accuracy:
            yield from _accuracy(found)
    if result.repeats:
        yield Listing("Calls on the same inputs", tuple(repeats.sentences(result.repeats)))
    yield Facts("Run", _known(_run(result)))
    if environment and result.environment:
        yield Facts("Environment", _known(_environment(result.environment)))
    if result.log:
        yield DetailBlock("Log", result.log, True)


def _known(facts: dict[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple((name, fact) for name, fact in facts.items() if fact is not None)


def _accuracy(found: Accuracy) -> Iterator[Section]:
    names, both = ("solution", "PyTorch"), (found.solution, found.reference)
    rows = tuple((name, *(f"{figure:.3g}" for figure in (each.median, each.high, each.worst, each.rel_l2)))
                 for name, each in zip(names, both, strict=True))
    yield Grid(f"Accuracy of {found.what}: {accuracy.beside_reference(found)}",
               ("errors in sigma", "median", "99.9%", "worst", "relative L2"), rows)
    if shares := accuracy.ulp_shares(both):
        yield Grid(f"Errors of {found.what} in ULPs", ("ULPs", *names), tuple(shares))


def _check(check: Check) -> dict[str, str | None]:
    return {
        "calls": str(check.calls),
        "compared with": check.oracle,
        "weights": check.weights,
        "tolerance": f"{check.tolerance:.3g}",
        "worst error": _error(check.worst_error),
        "largest absolute error": _error(check.max_abs_error),
        "relative L2 error": _error(check.rel_l2_error),
        "the reference's own relative L2 error": _error(check.reference_rel_l2_error),
    }


def _error(error: float | None) -> str | None:
    return None if error is None else f"{error:.3g}"


def _timing(timing: Timing, comparable: bool) -> Iterator[Section]:
    spreads = {
        "reference ms": timing.reference_ms,
        "solution ms": timing.solution_ms,
        "wall ms": timing.wall_ms,
        "judge's clock ms": timing.judge_ms,
        "speedup": timing.speedup,
        **{f"{each.name} ms": each.ms for each in timing.baselines},
        **{f"speedup over {each.name}": each.speedup for each in timing.baselines},
    }
    heading = "Times" if comparable else "Times on the CPU, which do not predict a GPU's"
    rows = tuple(_spread(name, spread) for name, spread in spreads.items() if spread)
    yield Grid(heading, ("", "median", "low", "high", "calls"), rows)
    if timing.passes:
        passes = tuple(_spread(name, spread) for each in timing.passes for name, spread in _of_pass(each).items())
        yield Grid("Times of forward and backward alone", ("", "median", "low", "high", "calls"), passes)
    facts = _known({
        "first call in the process": _host_ms(timing.first_call_ms),
        "loading the solution": _host_ms(timing.load_ms),
        "stopped by": timing.stopped_by,
        "overhead subtracted from the reference": _overhead(timing.reference_overhead_ms),
        "overhead subtracted from the solution": _overhead(timing.solution_overhead_ms),
        "state of the GPU": f"unknown: {timing.gpu_unknown}" if timing.gpu_unknown else None,
    })
    if facts:
        yield Facts("Timing", facts)
    if timing.roofline:
        yield Facts("Roofline", _known(_roofline(timing.roofline, timing.solution_ms.median)))
    if timing.gpu:
        yield Facts("GPU during the calls", _known(_gpu(timing.gpu)))


def _of_pass(found: PassTimes) -> dict[str, Spread]:
    return {
        f"{found.name}: reference ms": found.reference_ms,
        f"{found.name}: solution ms": found.solution_ms,
        f"{found.name}: speedup": found.speedup,
        **{f"{found.name}: {each.name} ms": each.ms for each in found.baselines},
        **{f"{found.name}: speedup over {each.name}": each.speedup for each in found.baselines},
    }


def _host_ms(ms: float | None) -> str | None:
    return None if ms is None else f"{significant(ms)} ms by the host"


def _memory(memory: Memory) -> dict[str, str | None]:
    outside = memory.outside_allocator_bytes
    return {
        "solution": f"{significant(memory.solution_mib)} MiB",
        "of which not from PyTorch's allocator": f"{significant(outside / MIB)} MiB" if outside else None,
        "reference": f"{significant(memory.reference_mib)} MiB",
    }


def _overhead(ms: float | None) -> str | None:
    return None if ms is None else f"{significant(ms)} ms a call"


def _spread(name: str, spread: Spread) -> tuple[str, ...]:
    figures = (significant(figure) for figure in (spread.median, spread.low, spread.high))
    return (name, *figures, ABSENT if spread.calls is None else str(spread.calls))


def _roofline(roofline: Roofline, solution_ms: float) -> dict[str, str | None]:
    """`solution_ms` may be 0, because overhead is subtracted from device times."""
    return {
        "bytes": f"{roofline.bytes:,}",
        "operations": f"{roofline.flops:,}",
        "time for the bytes": f"{significant(roofline.memory_ms)} ms",
        "time for the operations": f"{significant(roofline.compute_ms)} ms",
        "bound by": roofline.binds,
        "% of roofline": f"{roofline.ms / solution_ms:.1%}" if solution_ms > 0 else None,
    }


def _gpu(state: GpuState) -> dict[str, str | None]:
    dropped = f"{state.dropped} of {state.samples}"
    return {
        "SM clock": _clock(state.sm_mhz),
        "memory clock": _clock(state.memory_mhz),
        "highest temperature": f"{state.temperature_c:g} °C",
        "power": None if state.power_w is None else f"{significant(state.power_w)} W",
        "throttled by": ", ".join(state.throttled) or None,
        "samples dropped": dropped if state.dropped else None,
        "other processes": None if state.other_processes is None else str(state.other_processes),
    }


def _clock(spread: Spread) -> str:
    return f"{spread.median:.0f} MHz [{spread.low:.0f}, {spread.high:.0f}]"


def _kernels(kernels: Kernels) -> Grid:
    rows = tuple((each.name, each.origin, significant(each.ms), f"{each.share:.1%}") for each in kernels.top)
    heading = f"Kernels of a call: {kernels.own_share:.1%} of the GPU's time in own kernels"
    for part in kernels.passes:
        heading += f"; {part.name} {significant(part.ms)} ms, {part.own_share:.1%} own"
    return Grid(heading, ("kernel", "origin", "ms", "share"), rows)


def _launched(kernels: Kernels, environment: Environment | None) -> tuple[tuple[str, str], ...]:
    """Returns how the kernels were launched, by name, as far as it is known."""
    sm = environment.multiprocessors if environment else None
    return tuple((each.name, text) for each in kernels.top if (text := described(each, sm)))


def _run(result: Result) -> dict[str, str | None]:
    build = result.build
    return {
        "level": None if result.level is None else str(result.level),
        "shape": result.shape,
        "calls": "forward and backward" if result.backward else None,
        "device": result.device,
        "seed": None if result.seed is None else str(result.seed),
        "built in": f"{significant(build.seconds)} s" if build else None,
        "from the cache": _yes(build.cached) if build else None,
        "headers": build.headers if build else None,
        "sandbox": None if result.protections is None else ", ".join(result.protections) or "none",
    }


def _environment(found: Environment) -> dict[str, str | None]:
    return {
        "GPU": found.gpu,
        "driver": found.driver,
        "CUDA": found.cuda,
        "CPU": found.cpu,
        "torch": found.torch,
        "inlinebench": found.harness,
        "TF32": "on" if found.tf32 else "off",
        "measured peaks": found.peaks,
    }


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
