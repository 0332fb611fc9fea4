"""Times of forward and backward apart: from the same calls as those of both, each paired with the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inlinebench.evaluation.passes import moved
from inlinebench.evaluation.timings import Timings
from inlinebench.results.times import PassTimes, Spread, Timing
from inlinebench.timing.call import Sample
from inlinebench.timing.overhead import Overhead

KINDS = ("as drawn", "negated")


def both(forward: float, backward: float, blocked: bool = True) -> Sample:
    """A call whose passes take these times in ms."""
    return Sample(forward + backward, 0.0, blocked, forward_ms=forward)


REFERENCE = both(1.0, 3.0)


def timings(
    solutions: list[Sample], reference: Sample = REFERENCE, overhead: Overhead | None = None
) -> Timings:
    found = Timings(overhead)
    for sample in (both(50.0, 50.0), reference):  # the first warm-up call is slow
        found.add_reference(sample, counted=False)
        found.add_baselines({"compile": both(0.75, 1.5)})
    for index, solution in enumerate(solutions):
        found.add_reference(reference, counted=True)
        found.add_baselines({"compile": both(0.75, 1.5)})
        found.add_solution(solution, False, KINDS[index % 2])
    return found


def summary(found: Timings) -> Timing:
    made = found.summary(False, False)
    assert made is not None
    return made


def medians(found: Timing) -> list[tuple[str, float, float, float]]:
    return [(each.name, each.reference_ms.median, each.solution_ms.median, each.speedup.median)
            for each in found.passes]


def test_each_pass_has_its_times_and_its_speedups() -> None:
    found = summary(timings([both(0.5, 1.0)] * 10))
    assert medians(found) == [("forward", 1.0, 0.5, 2.0), ("backward", 3.0, 1.0, 3.0)]
    assert (found.solution_ms.median, found.speedup.median) == (1.5, pytest.approx(4 / 1.5))
    compiled = [each.baselines[0] for each in found.passes]
    assert [(each.name, each.ms.median, each.speedup.median) for each in compiled] == [
        ("compile", 0.75, 1.5), ("compile", 1.5, 1.5)]
    assert found.passes[0].solution_ms.calls == 10 and found.passes[0].speedup.low < 2.0 < found.passes[0].speedup.high
    assert found.flags == ()


def test_the_clock_s_overhead_is_taken_off_each_pass() -> None:
    overhead = Overhead(empty_ms=0.125, of_reference_ms=0.25, of_solution_ms=0.125)
    found = summary(timings([both(0.5, 1.0)] * 10, overhead=overhead))
    assert medians(found)[0][:3] == ("forward", 0.75, 0.375) and medians(found)[1][:3] == ("backward", 2.75, 0.875)
    assert found.solution_ms.median == 1.375  # once from both together, which contain the time stamp between them


def test_calls_that_do_not_count_for_both_passes_do_not_count_for_one() -> None:
    unblocked = both(40.0, 40.0, blocked=False)
    assert medians(summary(timings([both(0.5, 1.0), unblocked] * 8)))[0] == ("forward", 1.0, 0.5, 2.0)
    slow_on_one_kind = summary(timings([both(0.5, 1.0), both(0.5, 2.0)] * 20))
    assert slow_on_one_kind.inputs and medians(slow_on_one_kind)[1] == ("backward", 3.0, 2.0, 1.5)


def test_calls_with_one_pass_are_not_split() -> None:
    assert summary(timings([Sample(2.0, 0.0, True)] * 10, Sample(4.0, 0.0, True))).passes == ()


def test_no_split_is_given_where_other_times_replace_those_of_the_calls() -> None:
    slowed, judged = timings([both(0.5, 1.0)] * 10), timings([both(0.5, 1.0)] * 10)
    slowed.compare_alone({"as drawn": [3.0] * 3, "negated": [3.0] * 3}, synchronises=True)
    judged.outside_factor = 2.0
    for found in (slowed, judged):
        assert summary(found).passes == () and summary(found).flags


@pytest.mark.parametrize(("forward", "backward", "flagged"), [
    (2.0, 0.25, "forward takes longer than the reference's, 2 ms and 1 ms, and backward is faster"),
    (0.25, 4.0, "backward takes longer than the reference's, 4 ms and 3 ms, and forward is faster"),
    (0.5, 1.0, ""), (0.9, 3.0, ""), (2.0, 4.0, ""),
])
def test_work_that_may_have_moved_between_the_passes_is_flagged(
    forward: float, backward: float, flagged: str
) -> None:
    flags = summary(timings([both(forward, backward)] * 10)).flags
    assert [flag.partition(": work may have moved")[0] for flag in flags] == ([flagged] if flagged else [])


def test_a_slower_pass_within_its_interval_is_not_flagged() -> None:
    one = Spread(1.0, 1.0, 1.0)
    slow = PassTimes("forward", one, one, Spread(0.9, 0.8, 0.99))
    fast = PassTimes("backward", one, one, Spread(2.0, 1.5, 3.0))
    assert moved((slow, fast))
    assert not moved((replace(slow, speedup=Spread(0.9, 0.8, 1.01)), fast))
