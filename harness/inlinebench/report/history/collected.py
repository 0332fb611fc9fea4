"""Makes the history of each row from the results of many runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from inlinebench.catalog.natural_sort import natural
from inlinebench.report.comparison import Row, meaning_of_times
from inlinebench.report.history.levels import SHORTEST, LogTimes, Timeline, level_starts, run_factors
from inlinebench.report.history.tracks import History, Level, Track, TrackChange
from inlinebench.results.result import Result, Verdict

HALF_WIDTHS = 1.96
"""The half-width of a 95 % interval in standard errors."""
MOST = 1e9
"""What a time in ms and a speedup are below, and one over this what they are above. A file may hold anything."""


@dataclass(frozen=True)
class ResultsOfRun:
    """The results of one run."""

    name: str
    """The name of the run, such as that of its file."""
    results: Sequence[Result]
    """Its results. A row may have several."""


@dataclass
class _Collected:
    """The results of one row by the number of the run."""

    results: dict[int, list[Result]] = field(default_factory=dict)
    timed: dict[int, list[Result]] = field(default_factory=dict)
    """Those with times of one meaning."""


def history(runs: Sequence[ResultsOfRun]) -> History:
    """Returns the history of every row. Results of different models of GPUs, shapes or constants are not mixed."""
    found = _by_track(runs)
    timed = [result for run in runs for result in run.results if _has_times(result)]
    meaning = max(map(_meaning, timed), default=0)
    for each in found.values():
        for run, results in each.results.items():
            if current := [result for result in results if _has_times(result) and _meaning(result) == meaning]:
                each.timed[run] = current
    older = sum(_meaning(result) < meaning for result in timed)
    tracks = [track for model in sorted({key[0] for key in found})
              for track in _tracks(model, {key: each for key, each in found.items() if key[0] == model}, len(runs))]
    tracks.sort(key=lambda each: (*(each.changes[0].severity if each.changes else (9, 0.0)), *map(natural, each.row)))
    return History(tuple(run.name for run in runs), tuple(tracks), tuple(_left_out(runs, tracks, older)))


_Key = tuple[str, Row, tuple[str, ...] | None]
"""The model, the row, and the constants of a derived shape."""


def _by_track(runs: Sequence[ResultsOfRun]) -> dict[_Key, _Collected]:
    """Returns the results about solutions by track. A result of unknown hardware, such as that of an unreadable file,
    belongs to the only model of its kind of device, if there is one."""
    models: dict[str, set[str]] = {}
    for run in runs:
        for result in run.results:
            models.setdefault(_kind(result), set()).update(filter(None, [_model(result)]))
    found: dict[_Key, _Collected] = {}
    for number, run in enumerate(runs):
        for result in run.results:
            if result.verdict.is_about_solution:
                only = models[_kind(result)]
                model = _model(result) or (next(iter(only)) if len(only) == 1 else _kind(result))
                key = (model, (result.problem, result.solution, result.shape), result.constants)
                found.setdefault(key, _Collected()).results.setdefault(number, []).append(result)
    return found


def _kind(result: Result) -> str:
    return result.device.partition(":")[0]


def _model(result: Result) -> str | None:
    """Returns the model of the GPU, or the kind of a device without one: verdicts do not depend on the CPU's model."""
    known = result.environment
    return (known.gpu or _kind(result)) + (" with TF32" if known.tf32 else "") if known else None


def _has_times(result: Result) -> bool:
    timing = result.timing
    return timing is not None and result.times_are_comparable and all(
        1 / MOST < each.median < MOST for each in (timing.solution_ms, timing.reference_ms, timing.speedup))


def _meaning(result: Result) -> int:
    return meaning_of_times(result.environment.harness) if result.environment else 0


def _tracks(model: str, found: Mapping[_Key, _Collected], runs: int) -> Iterator[Track]:
    """Yields the tracks of one model."""
    references = _references(found)
    factors = run_factors(references, runs)
    known = {run for times in references for run in times}
    usual = median(factors[run] for run in known) if known else 0.0
    factors = [factor - usual for factor in factors]
    controls = [{run: time - factors[run] for run, time in times.items()} for times in references]
    timelines = [_timeline(each, factors) for each in found.values()]
    starts = level_starts(timelines, controls)
    for (key, each), timeline, begins in zip(found.items(), timelines, starts, strict=True):
        levels = tuple(_level(timeline, start, end) for start, end in pairwise([*begins, len(timeline.runs)])
                       if end > start)
        points = tuple((run, math.exp(value)) for run, value in zip(timeline.runs, timeline.corrected, strict=True))
        verdicts = tuple((run, _telling(results)) for run, results in each.results.items())
        changes = sorted([*_of_verdict(verdicts), *_of_time(levels, each.timed)], key=lambda change: change.severity)
        yield Track(key[1], model, tuple((run, result.verdict) for run, result in verdicts), points, levels,
                    tuple(changes))


def _references(found: Mapping[_Key, _Collected]) -> list[LogTimes]:
    """Returns the times of the reference of each problem at each shape: the medians over its solutions."""
    times: dict[tuple[str, str, tuple[str, ...] | None], dict[int, list[float]]] = {}
    for (_, (problem, _, shape), constants), each in found.items():
        for run, results in each.timed.items():
            times.setdefault((problem, shape, constants), {}).setdefault(run, []).extend(
                math.log(result.timing.reference_ms.median) for result in results if result.timing)
    return [{run: median(by_run[run]) for run in sorted(by_run)} for by_run in times.values()]


def _timeline(each: _Collected, factors: Sequence[float]) -> Timeline:
    timings = [[result.timing for result in results if result.timing] for results in each.timed.values()]
    times = [median(math.log(timing.solution_ms.median) for timing in found) for found in timings]
    errors = [median((timing.speedup.high - timing.speedup.low) / timing.speedup.median for timing in found)
              / 2 / HALF_WIDTHS for found in timings]
    corrected = [time - factors[run] for run, time in zip(each.timed, times, strict=True)]
    return Timeline(tuple(each.timed), tuple(times), tuple(corrected), tuple(errors))


def _level(timeline: Timeline, start: int, end: int) -> Level:
    return Level(timeline.runs[start], timeline.runs[end - 1], math.exp(median(timeline.corrected[start:end])))


def _telling(results: Sequence[Result]) -> Result:
    """Returns the last result of a run that did not pass, or the last one."""
    return next((each for each in reversed(results) if each.verdict is not Verdict.PASSED), results[-1])


def _of_verdict(verdicts: Sequence[tuple[int, Result]]) -> list[TrackChange]:
    """Returns the last change of the verdict."""
    changes = [TrackChange(before, after, old, new) for (before, old), (after, new) in pairwise(verdicts)
               if old.verdict is not new.verdict]
    return changes[-1:]


def _of_time(levels: Sequence[Level], timed: Mapping[int, Sequence[Result]]) -> list[TrackChange]:
    return [TrackChange(old.last, new.first, timed[old.last][-1], timed[new.first][-1], (old.ms, new.ms))
            for old, new in pairwise(levels)]


def _left_out(runs: Sequence[ResultsOfRun], tracks: Sequence[Track], older: int) -> Iterator[str]:
    results = [result for run in runs for result in run.results]
    silent = Counter(str(result.verdict) for result in results if not result.verdict.is_about_solution)
    if silent:
        named = ", ".join(f"{count} {verdict}" for verdict, count in silent.items())
        yield f"results that say nothing about their solution: {named}"
    if untimed := sum(result.verdict is Verdict.PASSED and not _has_times(result) for result in results):
        yield f"{untimed} passed results without comparable times: only their verdicts were compared"
    if older:
        yield f"{older} times of versions of inlinebench in which times had another meaning"
    if short := sum(0 < len(track.points) < 2 * SHORTEST for track in tracks):
        yield f"times of {short} rows with fewer than {2 * SHORTEST} runs"
    gone = [track for track in tracks if track.verdicts[-1][0] < len(runs) - 1]
    if gone:
        yield f"{len(gone)} rows have no result about their solution in the last run"
