from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.devices.cuda.state import GpuSample
from inlinebench.evaluation.sampling import sample as make_calls
from inlinebench.evaluation.timings import SLOWDOWN, SLOWDOWN_SLACK_MS, SPARE, Timings, slowed_down, speedup_alone
from inlinebench.timing.call import Sample
from inlinebench.timing.overhead import Overhead
from inlinebench.timing.statistics import ENOUGH, FEWEST
from inlinebench.timing.stopping import Decided, Sampling


def sample(milliseconds: float, blocked: bool = True) -> Sample:
    return Sample(milliseconds, 0.0, blocked)


def timings(solutions: list[Sample], reference: float = 4.0, synchronises: bool = False) -> Timings:
    found = Timings()
    found.add_reference(sample(99.0), counted=False)
    found.add_reference(sample(reference), counted=False)
    for index, solution in enumerate(solutions):
        found.add_reference(sample(reference), counted=True)
        found.add_solution(solution, synchronises, "as drawn" if index % 2 else "negated")
    return found


def test_the_summary_has_medians_and_the_speedup_of_the_pairs() -> None:
    summary = timings([sample(2.0)] * 10).summary(False, False)
    assert summary is not None
    assert (summary.reference_ms.median, summary.solution_ms.median, summary.speedup.median) == (4.0, 2.0, 2.0)
    assert (summary.reference_ms.calls, summary.solution_ms.calls, summary.flags) == (10, 10, ())


def test_only_the_last_warm_up_call_of_the_reference_is_paired() -> None:
    summary = timings([sample(2.0)]).summary(False, False)
    assert summary is not None and summary.speedup.median == 2.0


@pytest.mark.parametrize(("beside", "alone", "slowed"), [
    ([2.7], [2.7], None), ([2.8], [2.7], None), ([2.9], [2.7], 0.5),
    ([0.012], [0.008], None), ([0.06], [0.04], 0.5),
    ([2.7] * 3 + [8.0] * 2, [2.7], 0.75),    # two of five calls: the speedup is over neighbours
    ([2.7] * 9 + [8.0], [2.7], None),        # one disturbed call
])
def test_a_slowed_down_reference_is_distinguished_from_noise(
    beside: list[float], alone: list[float], slowed: float | None
) -> None:
    assert slowed_down(beside, alone, SLOWDOWN, SLOWDOWN_SLACK_MS) == slowed


def beside_and_alone(
    beside: list[float], alone: list[float], *, synchronises: bool, solutions: list[float] | None = None,
) -> tuple[Timings, str]:
    """Compares times of a reference beside a candidate, whose calls take 1 ms by default, with those alone, in ms."""
    found = Timings()
    found.add_reference(sample(beside[0]), counted=False)
    found.add_baselines({"compile": sample(3.0)})
    for reference, solution in zip(beside, solutions or [1.0] * len(beside), strict=True):
        found.add_reference(sample(reference), counted=True)
        found.add_baselines({"compile": sample(3.0)})
        found.add_solution(sample(solution), False, "as drawn")
    return found, found.compare_alone({"as drawn": alone}, synchronises)


def test_a_reference_that_was_slowed_down_is_a_reason_to_reject() -> None:
    found, reason = beside_and_alone([5.2] * 10, [2.7] * 3, synchronises=False)
    assert reason == "the reference was slowed down: 5.2 ms while the solution's process existed, 2.7 ms after it ended"
    summary = found.summary(False, False)
    assert summary is not None and summary.speedup.median == pytest.approx(5.2)


def test_a_reference_that_was_a_little_slower_counts_as_it_was_alone() -> None:
    found, reason = beside_and_alone([3.0] * 10, [2.7] * 3, synchronises=False)
    summary = found.summary(False, False)
    assert reason == "" and summary is not None
    assert summary.speedup.median == pytest.approx(2.7)
    assert any("slower beside the solution: 3 ms while" in flag for flag in summary.flags)


def test_a_reference_that_waits_for_the_device_counts_as_it_was_alone_if_it_was_slower_before() -> None:
    found, reason = beside_and_alone([11.7] * 20, [9.1, 9.3, 8.8, 9.0, 10.2], synchronises=True)
    assert reason == ""
    summary = found.summary(True, False)
    assert summary is not None
    assert summary.speedup.median == pytest.approx(9.1) and summary.speedup.low < 8.8 and summary.speedup.high > 10.2
    assert (summary.reference_ms.median, summary.reference_ms.calls) == (9.1, 5)
    assert summary.baselines[0].speedup.median == 3.0
    assert ("the reference was slower beside the solution: 11.7 ms while the solution's process existed, 9.1 ms after "
            "it ended; the speedup uses the latter") in summary.flags


def test_a_reference_that_waits_for_the_device_and_was_not_slower_keeps_its_times() -> None:
    found, reason = beside_and_alone([9.4] * 20, [9.1, 9.3, 8.8], synchronises=True)
    summary = found.summary(True, False)
    assert reason == "" and summary is not None
    assert summary.speedup.median == pytest.approx(9.4) and summary.reference_ms.calls == 20
    assert len(summary.flags) == 1


@pytest.mark.parametrize("slowed", [1.5, 3.0, 20.0])
def test_slowing_down_a_reference_that_waits_for_the_device_gains_nothing(slowed: float) -> None:
    found, reason = beside_and_alone([9.0 * slowed] * 20, [9.0] * 5, synchronises=True)
    summary = found.summary(True, False)
    assert reason == "" and summary is not None
    assert summary.speedup.median == pytest.approx(9.0) and summary.speedup.high < 9.1


def on_two_kinds(*, slowed: float = 1.0) -> Timings:
    """A reference that takes 1 ms on inputs as drawn, and twice that on a third of the calls, times `slowed`."""
    found = timings([])
    for index in range(30):
        found.add_reference(sample((1.0 if index % 3 else 2.0) * slowed), counted=True)
        found.add_solution(sample(0.5), False, "as drawn" if index % 3 else "negated")
    return found


def test_a_reference_whose_times_depend_on_its_inputs_was_not_slowed_down() -> None:
    found = on_two_kinds()
    assert not found.seems_slowed_down("as drawn", [1.0] * 3) and not found.seems_slowed_down("negated", [2.0] * 3)
    assert found.seems_slowed_down("negated", [1.0] * 3) and found.seems_slowed_down("scaled up", [1.0] * 3)
    assert found.compare_alone({"as drawn": [1.0] * 3, "negated": [2.0] * 3}, synchronises=False) == ""
    summary = found.summary(False, False)
    assert summary is not None and not any("slower" in flag for flag in summary.flags)
    assert (summary.reference_ms.median, summary.reference_ms.calls) == (1.0, 20)  # those beside, as drawn


@pytest.mark.parametrize(("slowed", "rejected"), [(1.1, False), (1.6, True)])
def test_a_reference_whose_times_depend_on_its_inputs_and_was_slowed_down_is_found(
    slowed: float, rejected: bool
) -> None:
    found = on_two_kinds(slowed=slowed)
    reason = found.compare_alone({"as drawn": [1.0] * 3, "negated": [2.0] * 3}, synchronises=False)
    assert bool(reason) is rejected
    summary = found.summary(False, False)
    assert rejected or (summary is not None and [kind.speedup.median for kind in summary.inputs] == [2.0, 4.0])


def test_a_reference_that_was_slowed_down_on_one_kind_of_inputs_is_found() -> None:
    found = on_two_kinds()
    reason = found.compare_alone({"as drawn": [1.0] * 3, "negated": [1.0] * 3}, synchronises=False)
    assert reason == ("the reference was slowed down: the slowest quarter of its calls took at least 2 ms while the "
                      "solution's process existed, 1 ms after it ended")


def test_the_slowest_inputs_decide_over_a_reference_alone_as_well() -> None:
    found = timings([sample(1.0 if index % 2 else 2.0) for index in range(20)], reference=8.0)
    assert found.compare_alone({"as drawn": [4.0] * 3, "negated": [4.0] * 3}, synchronises=True) == ""
    summary = found.summary(True, False)
    assert summary is not None and summary.speedup.median == 2.0
    assert summary.inputs[0].speedup == summary.speedup
    assert [kind.speedup.median for kind in summary.inputs] == [2.0, 4.0]


def test_the_speedup_over_a_reference_alone_covers_what_its_times_scatter() -> None:
    assert speedup_alone([9.0, 12.0, 10.0], [2.0] * 10) == (4.5, 5.0, 6.0)
    low, middle, high = speedup_alone([10.0], [1.9, 2.0, 2.1] * 5)
    assert low < middle == 5.0 < high


def test_the_reference_is_warm_after_its_first_call() -> None:
    found = Timings()
    assert not found.warm
    found.add_reference(sample(1.0), counted=False)
    assert found.warm


def test_times_without_the_blocking_kernel_are_not_used() -> None:
    summary = timings([sample(2.0), sample(50.0, blocked=False), sample(2.0)]).summary(False, False)
    assert summary is not None
    assert (summary.solution_ms.calls, summary.solution_ms.high) == (2, 2.0)


def test_a_solution_that_synchronises_is_timed_and_flagged() -> None:
    summary = timings([sample(2.0, blocked=False)] * 3, synchronises=True).summary(True, True)
    assert summary is not None and summary.solution_ms.calls == 3
    assert [flag.partition(" waits")[0] for flag in summary.flags] == ["the reference", "the solution"]


@pytest.mark.parametrize("solution", [sample(2.0, blocked=False), sample(0.0)])
def test_there_is_no_summary_without_a_usable_time(solution: Sample) -> None:
    assert timings([solution] * 3).summary(False, False) is None


def test_there_is_no_summary_of_an_evaluation_that_was_cut_short() -> None:
    found = timings([sample(2.0)] * 3)
    found.add_reference(sample(4.0), counted=True)
    assert found.summary(False, False) is None


def test_the_slowest_kind_of_inputs_decides() -> None:
    found = timings([sample(2.0 if index % 2 else 4.0) for index in range(20)])
    assert found.solution_ms() == 4.0
    summary = found.summary(False, False)
    assert summary is not None
    assert (summary.solution_ms.median, summary.solution_ms.calls, summary.speedup.median) == (4.0, 10, 1.0)
    assert summary.flags == (
        "the speedup depends on the inputs: the lowest counts (negated), 1; 2 on the others",)
    assert [(each.inputs, each.solution_ms.median, each.speedup.median) for each in summary.inputs] == [
        ("negated", 4.0, 1.0), ("as drawn", 2.0, 2.0)]


def test_the_reference_is_reported_on_the_inputs_that_decide() -> None:
    found = Timings()
    found.add_reference(sample(4.0), counted=False)
    for index in range(20):
        found.add_reference(sample(8.0 if index % 2 else 4.0), counted=True)
        found.add_solution(sample(2.0), False, "one large value" if index % 2 else "as drawn")
    summary = found.summary(False, False)
    assert summary is not None
    assert (summary.reference_ms.median, summary.reference_ms.calls) == (4.0, 10)
    assert (summary.solution_ms.median, summary.speedup.median) == (2.0, 2.0)
    assert summary.flags == ("the speedup depends on the inputs: the lowest counts (as drawn), 2; 4 on the others",)


def test_the_baselines_are_compared_on_the_inputs_that_decide() -> None:
    found = Timings()
    found.add_reference(sample(8.0), counted=False)
    found.add_baselines({"compile": sample(6.0)})
    for index in range(20):
        found.add_reference(sample(8.0), counted=True)
        found.add_baselines({"compile": sample(6.0)})
        found.add_solution(sample(2.0 if index % 2 else 4.0), False, "as drawn" if index % 2 else "negated")
    summary = found.summary(False, False)
    assert summary is not None and summary.baselines[0].speedup.median == 1.5


def test_a_reference_that_is_slower_on_the_same_inputs_changes_nothing() -> None:
    found = Timings()
    found.add_reference(sample(4.0), counted=False)
    for index in range(20):
        found.add_reference(sample(4.0 if index % 2 else 8.0), counted=True)
        found.add_solution(sample(2.0 if index % 2 else 4.0), False, "as drawn" if index % 2 else "negated")
    summary = found.summary(False, False)
    assert summary is not None and summary.inputs == () and summary.flags == ()


def test_times_that_hardly_depend_on_the_inputs_count_together() -> None:
    even = timings([sample(2.0 if index % 2 else 2.05) for index in range(20)]).summary(False, False)
    assert even is not None and even.flags == () and even.inputs == () and even.solution_ms.calls == 20
    few = timings([sample(2.0 if index % 2 else 4.0) for index in range(4)]).summary(False, False)
    assert few is not None and few.flags == ()


KINDS = ("as drawn", "negated", "random signs", "scaled down", "scaled up", "large", "one large")


def sampled(
    call: Callable[[str, int], Sample], *, calls: int = 20, seed: int = 0, timed: bool = True,
    state: Callable[[str], GpuSample | None] = lambda kind: None,
) -> tuple[Timings, int]:
    """Samples as `Calls` does: counted calls in secret order, then those that are missing.

    `call` returns the sample of a call on this kind of inputs, given how many calls on it came before. Returns the
    times and the number of further calls.
    """
    source, found, made = random.Random(seed), Timings(), dict.fromkeys(KINDS, 0)

    def secret_order() -> Iterator[str]:
        while True:
            yield from source.sample(KINDS, len(KINDS))

    def add(kind: str) -> None:
        found.add_reference(sample(4.0), counted=True)
        found.add_solution(call(kind, made[kind]), False, kind, state(kind))
        made[kind] += 1

    found.kinds = KINDS if timed else ()
    found.add_reference(sample(4.0), counted=False)
    order = secret_order()
    for _ in range(calls):
        add(next(order))
    for kind in found.missing(order):
        add(kind)
    return found, sum(made.values()) - calls


def usually_blocked(source: random.Random, milliseconds: float) -> Sample:
    return sample(milliseconds * source.uniform(0.99, 1.01), blocked=source.random() > 0.1)


@pytest.mark.parametrize("calls", [3, 20, 200])
def test_a_slow_kind_of_inputs_always_decides(calls: int) -> None:
    for seed in range(50):
        source = random.Random(seed)
        found, _ = sampled(lambda kind, _: usually_blocked(source, 5.4 if kind == "random signs" else 0.74),  # noqa: B023
                           calls=calls, seed=seed)
        summary = found.summary(False, False)
        assert summary is not None and summary.inputs[0].inputs == "random signs"
        assert summary.solution_ms.median == pytest.approx(5.4, rel=0.02)
        assert summary.solution_ms.calls is not None and summary.solution_ms.calls >= ENOUGH
        assert len(summary.inputs) == len(KINDS)
        assert all(each.solution_ms.calls is not None and each.solution_ms.calls >= FEWEST for each in summary.inputs)


def test_a_solution_whose_times_do_not_depend_on_the_inputs_needs_few_more_calls() -> None:
    for seed in range(50):
        source = random.Random(seed)
        found, more = sampled(lambda _, __: usually_blocked(source, 2.0), seed=seed)  # noqa: B023
        summary = found.summary(False, False)
        assert more <= 12 and summary is not None and summary.flags == ()


def test_without_reported_times_there_are_no_further_calls() -> None:
    assert sampled(lambda kind, _: sample(5.4 if kind == "random signs" else 0.74), timed=False)[1] == 0


def test_a_kind_of_inputs_whose_calls_stay_unusable_is_flagged_after_a_bounded_number_of_calls() -> None:
    found, more = sampled(lambda kind, _: sample(5.4 if kind == "random signs" else 0.74, kind != "random signs"))
    summary = found.summary(False, False)
    assert summary is not None and more <= FEWEST + SPARE + len(KINDS)
    assert "the times do not cover all inputs: too few calls could be timed on inputs random signs" in summary.flags


def test_a_kind_of_inputs_on_which_the_gpu_is_always_throttled_decides() -> None:
    found, _ = sampled(lambda kind, _: sample(5.4 if kind == "random signs" else 0.74),
                       state=lambda kind: SLOW if kind == "random signs" else CALM)
    summary = found.summary(False, False)
    assert summary is not None and summary.solution_ms.median == 5.4


def test_the_further_calls_keep_the_secret_order() -> None:
    found = Timings()
    found.kinds = KINDS
    order = [*KINDS[3:], *KINDS[:3]]
    assert next(found.missing(iter(order))) == KINDS[3]
    for _ in range(FEWEST):
        found.add_reference(sample(4.0), counted=True)
        found.add_solution(sample(2.0), False, KINDS[3])
    found.add_reference(sample(4.0), counted=True)
    assert next(found.missing(iter(order))) == KINDS[4]


def test_a_held_call_may_take_longer_on_inputs_on_which_the_reference_does() -> None:
    found = on_two_kinds()  # 1 ms as drawn and 2 ms negated, against 0.5 ms: the speedup is 2, as on inputs as drawn
    allowed = found.allowed_ms(["as drawn", "negated", "never called"], {})
    assert allowed == pytest.approx({"as drawn": 0.5, "negated": 1.0, "never called": 0.5})
    assert found.allowed_ms(["negated"], {"negated": [1.95, 2.0, 1.9]}) == pytest.approx({"negated": 1.0})
    assert timings([sample(2.0, blocked=False)] * 3).allowed_ms(["as drawn"], {}) == {}


def test_slowing_down_the_reference_on_one_kind_of_inputs_allows_no_more_time_on_it() -> None:
    assert on_two_kinds().allowed_ms(["negated"], {"negated": [1.2, 1.2, 1.2]}) == pytest.approx({"negated": 0.6})
    slowed = on_two_kinds(slowed=1.2)
    assert slowed.compare_alone({"as drawn": [1.0] * 3, "negated": [2.0] * 3}, synchronises=False) == ""
    assert slowed.allowed_ms(["as drawn", "negated"], {}) == pytest.approx({"as drawn": 0.5, "negated": 1.0})


def test_forged_times_that_scatter_on_one_kind_of_inputs_allow_no_more_time_on_it() -> None:
    """The median on this kind would allow ten times as much, and the times that are too short keep it from deciding."""
    forged = [20.0] * 9 + [0.1] * 7
    found = timings([sample(2.0 if index % 2 else forged[index // 2]) for index in range(32)])
    assert found.slowest_inputs() is None
    assert found.allowed_ms(["as drawn", "negated"], {}) == pytest.approx({"as drawn": 2.0, "negated": 2.0})


def test_a_time_of_the_judges_clock_replaces_the_reported_one() -> None:
    found = timings([sample(2.0, blocked=False)] * 10, synchronises=True)
    found.outside_factor = 2.0
    summary = found.summary(False, True)
    assert summary is not None
    assert (summary.solution_ms.median, summary.speedup.median) == (4.0, 1.0)
    assert "timed by the judge's clock: the solution's process reported 2 ms" in summary.flags


CALM = GpuSample(1980.0, 2619.0, 40.0, 300.0)
SLOW = GpuSample(900.0, 2619.0, 85.0, 700.0, ("hardware thermal slowdown",))


def under(states: list[GpuSample | None], times: list[float]) -> Timings:
    found = Timings()
    found.add_reference(sample(4.0), counted=False)
    for state, milliseconds in zip(states, times, strict=True):
        found.add_reference(sample(4.0), counted=True)
        found.add_solution(sample(milliseconds), False, "as drawn", state)
    return found


def test_calls_on_a_throttled_gpu_are_dropped_and_flagged() -> None:
    summary = under([CALM, SLOW, CALM, CALM], [2.0, 9.0, 2.0, 2.0]).summary(False, False)
    assert summary is not None and summary.gpu is not None
    assert (summary.solution_ms.calls, summary.solution_ms.high, summary.gpu.dropped) == (3, 2.0, 1)
    assert any("hardware thermal slowdown" in flag for flag in summary.flags)


def test_a_gpu_that_is_mostly_throttled_keeps_its_calls() -> None:
    summary = under([SLOW, SLOW, CALM], [9.0, 9.0, 2.0]).summary(False, False)
    assert summary is not None and summary.gpu is not None
    assert (summary.solution_ms.calls, summary.gpu.dropped) == (3, 0)


def test_an_unknown_gpu_state_has_a_reason() -> None:
    found = under([None, None], [2.0, 2.0])
    found.gpu_unknown = "no NVML"
    summary = found.summary(False, False)
    assert summary is not None
    assert (summary.gpu, summary.gpu_unknown, summary.solution_ms.calls) == (None, "no NVML", 2)


@pytest.mark.parametrize(("wall", "bound"), [(3.9, False), (4.1, True)])
def test_a_solution_that_mostly_waits_for_the_host_is_flagged_as_launch_bound(wall: float, bound: bool) -> None:
    found = timings([sample(2.0)] * 3)
    for milliseconds in (wall, wall, wall * 3):
        found.add_wall(milliseconds)
    summary = found.summary(False, False)
    assert summary is not None and summary.wall_ms is not None
    assert (summary.wall_ms.median, any("launch-bound" in flag for flag in summary.flags)) == (wall, bound)


def test_baselines_are_paired_like_the_reference() -> None:
    found = Timings()
    for counted, (reference, compiled) in enumerate([(4.0, 3.0), (4.4, 3.3), (4.0, 3.0)]):
        found.add_reference(sample(reference), counted > 0)
        late = {"compile-max": sample(1.0)} if counted else {}
        found.add_baselines({"compile": sample(compiled), **late})
        if counted:
            found.add_solution(sample(1.0), False, "as drawn")
    summary = found.summary(False, False)
    assert summary is not None
    (baseline,) = summary.baselines  # a baseline that misses the first calls has no pairs
    assert (baseline.name, baseline.speedup.median) == ("compile", pytest.approx(3.15))


def test_the_overhead_of_the_clock_is_subtracted() -> None:
    found = Timings(Overhead(empty_ms=0.0013, of_reference_ms=0.0022, of_solution_ms=0.0024))
    found.add_reference(sample(0.0062), counted=False)
    for _ in range(3):
        found.add_reference(sample(0.0062), counted=True)
        found.add_solution(sample(0.0044), False, "as drawn")
    summary = found.summary(False, False)
    assert summary is not None
    assert (summary.solution_ms.median, summary.speedup.median) == (pytest.approx(0.002), pytest.approx(2.0))
    assert summary.empty_ms == 0.0013
    assert (summary.reference_overhead_ms, summary.solution_overhead_ms) == (0.0022, 0.0024)
    assert found.of_reference(sample(0.0001)) > 0 and found.of_solution(sample(0.0001)) > 0
    assert not summary.flags


def test_a_doubtful_overhead_is_flagged() -> None:
    found = Timings(Overhead(0.0013, 0.0022, 0.0022, doubtful=True))
    found.add_reference(sample(4.0), counted=False)
    found.add_reference(sample(4.0), counted=True)
    found.add_solution(sample(2.0), False, "as drawn")
    summary = found.summary(False, False)
    assert summary is not None and [flag for flag in summary.flags if "the judge's overhead was subtracted" in flag]


def test_a_reason_based_on_times_mentions_other_processes_on_the_gpu() -> None:
    timings = Timings()
    for others in (None, 0):
        timings.other_processes = others
        assert timings.in_doubt("too slow") == "too slow"
    timings.other_processes = 2
    assert timings.in_doubt("too slow") == (
        "too slow; but the GPU was busy: 2 other processes ran on it, so try again on an idle GPU")


class Noisy:
    """Makes calls whose times are noisy by 3 %, and whose speedup is 2."""

    def __init__(self, times: Timings) -> None:
        self._times, self._random = times, random.Random(1)

    def make(self, number: int, *, counted: bool, variant: object = None) -> None:
        self._times.add_reference(sample(self._random.gauss(4.0, 0.1)), counted)
        if counted:
            self._times.add_solution(sample(self._random.gauss(2.0, 0.05)), False, "as drawn")


def test_with_at_least_calls_end_when_the_side_is_known() -> None:
    plain = Sampling(least=20, most=200, budget_s=60.0, half_width=0.0001)
    made = []
    for sampling in (plain, replace(plain, at_least=1.0), replace(plain, at_least=2.0)):
        found = Timings()
        calls, draws = Noisy(found), SimpleNamespace(variants=repeat("as drawn"))
        tools = SimpleNamespace(settings=SimpleNamespace(warmup=5), progress=str, watch=None)
        arguments: Any = (calls, draws, found, tools, sampling)
        make_calls(*arguments)
        summary = found.summary(False, False)
        assert summary is not None and 1.95 < summary.speedup.low < 2.0 < summary.speedup.high < 2.05
        made.append((summary.solution_ms.calls, summary.stopped_by))
    assert made[1] == (20, Decided.name) and made[0] == made[2] and made[0][0] > 60  # type: ignore[operator]


def test_the_margin_is_that_of_the_interval() -> None:
    assert timings([sample(0.001)] * 9).margin() == pytest.approx(0.5, rel=0.01)
    assert timings([sample(2.0)] * 9).margin() == pytest.approx(0.00075)
