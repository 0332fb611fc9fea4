"""Where levels start: planted changes are found, and runs without one are silent."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.report.history.levels import (
    FEWEST_CONTROLS,
    LEAST,
    LEAST_ALONE,
    SHORTEST,
    LogTimes,
    Timeline,
    control_spread,
    level_starts,
    noise,
    run_factors,
)

seeds = st.integers(0, 2**32)


def flat(seed: int, runs: int = 20, deviation: float = 0.005) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(0, deviation) for _ in range(runs)]


def timeline(values: Sequence[float], measured: Sequence[float] | None = None, error: float = 0.0) -> Timeline:
    return Timeline(tuple(range(len(values))), tuple(measured or values), tuple(values), (error,) * len(values))


QUIET = [dict.fromkeys(range(60), 0.0)] * FEWEST_CONTROLS


def starts(values: Sequence[float], controls: Sequence[LogTimes] = QUIET, error: float = 0.0) -> list[int]:
    return level_starts([timeline(values, error=error)], controls)[0]


def shifted(values: Sequence[float], at: int, share: float) -> list[float]:
    return [value + (math.log1p(share) if run >= at else 0.0) for run, value in enumerate(values)]


@given(seeds)
@settings(deadline=None)
def test_a_change_of_five_percent_is_found_after_four_runs_at_its_place(seed: int) -> None:
    assert starts(shifted(flat(seed, 16, 0.004), 12, 0.05)) in ([0, 11], [0, 12], [0, 13])
    assert starts(shifted(flat(seed, 16, 0.004), 12, -0.05)) in ([0, 11], [0, 12], [0, 13])


def test_a_change_of_three_percent_is_found_within_a_few_runs() -> None:
    found = [len(starts(shifted(flat(seed, 21), 15, 0.03))) > 1 for seed in range(50)]
    assert sum(found) >= 48


def test_flat_times_are_silent() -> None:
    assert [starts(flat(seed, 60)) for seed in range(200)] == [[0]] * 200


@given(seeds, st.sets(st.integers(0, 29), max_size=3), st.floats(1.02, 3.0))
@settings(deadline=None)
def test_three_disturbed_runs_are_no_change(seed: int, disturbed: set[int], factor: float) -> None:
    values = [value + (math.log(factor) if run in disturbed else 0.0)
              for run, value in enumerate(flat(seed, 30, 0.003))]
    assert starts(values) == [0]


def test_four_runs_in_succession_are_a_change_and_those_before_three_are_too_few() -> None:
    values = [*flat(1, 12, 0.002), *shifted(flat(2, 4, 0.002), 0, 0.2)]
    assert starts(values) == [0, 12]
    assert starts(values[:-1]) == [0]
    assert starts(values[12 - SHORTEST :]) == [0, SHORTEST]
    assert starts(values[13 - SHORTEST :]) == [0]


def test_a_change_below_the_least_is_not_reported_however_quiet_the_times_are() -> None:
    assert starts(shifted([0.0] * 30, 15, 0.014)) == [0]
    assert starts(shifted([0.0] * 30, 15, 0.016)) == [0, 15]
    assert math.expm1(LEAST) == pytest.approx(0.015)


def test_noise_within_a_run_bounds_what_is_found() -> None:
    values = shifted([0.0] * 30, 15, 0.03)
    assert starts(values, error=0.001) == [0, 15]
    assert starts(values, error=0.03) == [0]


def test_each_of_several_levels_is_found() -> None:
    values = shifted(shifted(flat(3, 40), 12, 0.1), 25, -0.1)
    assert starts(values) == [0, 12, 25]


@given(seeds, st.integers(8, 40), st.integers(0, 40), st.floats(-0.2, 0.2))
@settings(deadline=None)
def test_later_runs_do_not_change_what_was_found(seed: int, cut: int, at: int, share: float) -> None:
    values = shifted(flat(seed, 40), at, share)
    later, earlier = starts(values), starts(values[:cut])
    assert later[: len(earlier)] == earlier


def test_the_factors_of_runs_are_those_of_the_references() -> None:
    shared = [0.0, 0.02, -0.01, 0.02, 0.3]
    references = [{run: level + factor for run, factor in enumerate(shared)} for level in (1.0, -2.0, 5.0)]
    references[0] = {run: time for run, time in references[0].items() if run != 1}
    assert run_factors(references, 5) == pytest.approx(shared)
    assert run_factors([], 3) == [0.0, 0.0, 0.0]


def test_a_reference_that_changed_does_not_change_the_factors() -> None:
    references = [dict(enumerate([1.0] * 10)) for _ in range(5)]
    references[0] = dict(enumerate(shifted([1.0] * 10, 5, -0.4)))
    assert run_factors(references, 10) == [0.0] * 10


def test_a_change_that_the_measured_times_do_not_show_is_none() -> None:
    """The only reference became faster, and with it the factor of the runs."""
    corrected = shifted(flat(4), 10, 0.2)
    assert level_starts([timeline(corrected)], []) == [[0, 10]]
    assert level_starts([timeline(corrected, measured=flat(4))], []) == [[0]]


def spread_out(share: float, count: int = 33) -> list[LogTimes]:
    """Returns controls that change at run 10, each by another share."""
    generator = random.Random(5)
    return [dict(enumerate(shifted(flat(each, deviation=0.002), 10, generator.gauss(0, share))))
            for each in range(count)]


def test_a_step_like_those_of_the_references_is_another_machine() -> None:
    values = shifted(flat(6, deviation=0.002), 10, 0.03)
    assert starts(values, spread_out(0.0)) == [0, 10]
    assert starts(values, spread_out(0.01)) == [0]
    assert starts(shifted(values, 10, 0.1), spread_out(0.01)) == [0, 10]


def test_with_too_few_references_only_larger_changes_are_reported() -> None:
    for share, found in ((0.029, [0]), (0.031, [0, 15]), (-0.031, [0, 15])):
        assert starts(shifted([0.0] * 30, 15, share), []) == found
    assert math.expm1(LEAST_ALONE) == pytest.approx(0.03)


def test_too_few_references_have_no_spread() -> None:
    assert control_spread(spread_out(0.01, FEWEST_CONTROLS - 1), 0, 10, 19) is None
    found = control_spread(spread_out(0.01, FEWEST_CONTROLS), 0, 10, 19)
    assert found is not None and 0.005 < found < 0.03
    assert control_spread(spread_out(0.01), 7, 10, 19) is None  # three runs before are too few


@given(seeds)
def test_the_noise_is_estimated_beside_a_change_and_disturbed_runs(seed: int) -> None:
    values = shifted(flat(seed, 200), 90, 0.5)
    values[50] += 0.2
    assert 0.0035 < noise(values) < 0.0068
    assert noise(values[:1]) == 0.0


def test_runs_may_lack_times() -> None:
    values = shifted(flat(7, 30), 15, 0.1)
    kept = [run for run in range(30) if run % 5]
    found = Timeline(tuple(kept), *(tuple(values[run] for run in kept),) * 2, (0.0,) * len(kept))
    assert [kept[at] for at in level_starts([found], [])[0]] == [1, 16]
    assert level_starts([Timeline((), (), (), ()), found], [])[0] == [0]
    with pytest.raises(ValueError, match="each run has one time"):
        Timeline((1, 2), (0.0,), (0.0,), (0.0,))
