"""The details of a result, which the page shows when a row is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inlinebench.records.result import Check, Environment, Kernels, Result
from inlinebench.records.times import GpuState, Roofline, Spread, Timing
from inlinebench.report.text import ABSENT, significant


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


Section = Facts | Grid | Listing | DetailBlock


def sections(result: Result, source: str | None) -> tuple[Section, ...]:
    """Returns the sections of a result, most important first. Unknown values are left out."""
    return tuple(_sections(result, source))


def _sections(result: Result, source: str | None) -> Iterator[Section]:
    if result.reason:
        yield DetailBlock("Reason", result.reason, False)
    if result.timing and result.timing.flags:
        yield Listing("Flags on the times", result.timing.flags)
    if result.check:
        if result.check.notes:
            yield Listing("Notes", result.check.notes)
        yield Facts("Check", _known(_check(result.check)))
    if result.timing:
        yield from _timing(result.timing, result.device == "cpu")
    if result.kernels:
        yield _kernels(result.kernels)
    yield Facts("Run", _known(_run(result)))
    if result.environment:
        yield Facts("Environment", _known(_environment(result.environment)))
    if result.log:
        yield DetailBlock("Log", result.log, True)
    if source is not None:
        yield DetailBlock("Source", source, True)


def _known(facts: dict[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple((name, fact) for name, fact in facts.items() if fact is not None)


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


def _timing(timing: Timing, on_cpu: bool) -> Iterator[Section]:
    spreads = {
        "reference ms": timing.reference_ms,
        "solution ms": timing.solution_ms,
        "wall ms": timing.wall_ms,
        "speedup": timing.speedup,
        **{f"{each.name} ms": each.ms for each in timing.baselines},
        **{f"speedup over {each.name}": each.speedup for each in timing.baselines},
    }
    heading = "Times on the CPU, which do not predict a GPU's" if on_cpu else "Times"
    rows = tuple(_spread(name, spread) for name, spread in spreads.items() if spread)
    yield Grid(heading, ("", "median", "low", "high", "calls"), rows)
    facts = _known({
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
    return Grid(heading, ("kernel", "origin", "ms", "share"), rows)


def _run(result: Result) -> dict[str, str | None]:
    build = result.build
    return {
        "level": None if result.level is None else str(result.level),
        "shape": result.shape,
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
