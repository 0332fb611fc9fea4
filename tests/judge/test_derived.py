from __future__ import annotations

from dataclasses import replace

import pytest

from inlinebench.judge.derived import at_derived, confirmed, last_of, smaller_ones
from inlinebench.problem.probe.records import CannotRun
from inlinebench.results.result import Verdict

from ..report.samples import result

RAISES = CannotRun("p.py: forward raises ValueError")
TOO_LARGE = CannotRun("needs at least 9 GiB", own_fault=False, beyond_limits=True)


@pytest.mark.parametrize(("verdict", "named"), [
    (Verdict.WRONG, True), (Verdict.CRASHED, True), (Verdict.TIMED_OUT, True), (Verdict.NO_OWN_KERNEL, True),
    (Verdict.BUILD_FAILED, False), (Verdict.SKIPPED, False), (Verdict.INVALID, False),
])
def test_only_failures_that_sizes_may_cause_name_the_shape(verdict: Verdict, named: bool) -> None:
    found = at_derived(result(verdict=verdict, shape="derived"), {"N": 4, "M": (2, 3)})
    assert found.reason == ("at the derived shape N=4, M=(2, 3): because" if named else "because")
    assert found.constants == ("N=4", "M=(2, 3)") and found.failed_derived is named


def test_a_result_of_the_file_as_written_is_unchanged() -> None:
    assert at_derived(result(verdict=Verdict.WRONG), {}) == result(verdict=Verdict.WRONG)
    assert at_derived(result(), {"N": 4}).reason == ""


def test_a_solution_passes_if_it_does_with_sizes_near_those_of_the_file_and_a_note_says_what_failed() -> None:
    failed = at_derived(result(verdict=Verdict.WRONG, shape="derived"), {"N": 4})
    passed = at_derived(result(shape="derived"), {"N": 512})
    found = confirmed(failed, passed)
    assert found.verdict is Verdict.PASSED and found.constants == ("N=512",) and found.check is not None
    assert found.check.notes[-1] == "wrong with smaller sizes: at the derived shape N=4: because"


@pytest.mark.parametrize(("verdict", "said"), [
    (Verdict.WRONG, "; also wrong at N=512"), (Verdict.CRASHED, "; also crashed at N=512"), (Verdict.SKIPPED, "")])
def test_a_failure_stays_one_and_says_what_happened_with_other_sizes(verdict: Verdict, said: str) -> None:
    failed = at_derived(replace(result(verdict=Verdict.WRONG, shape="derived"), reason="first\nsecond"), {"N": 4})
    found = confirmed(failed, at_derived(result(verdict=verdict, shape="derived"), {"N": 512}))
    assert found == replace(failed, reason=f"at the derived shape N=4: first{said}\nsecond")


def test_after_a_limit_only_smaller_shapes_are_tried() -> None:
    shapes = [{"N": 64, "M": (32,)}, {"N": 32, "M": (32,)}, {"N": 32, "M": (96,)}, {"N": 16}, {}]
    assert smaller_ones(shapes, {"N": 48, "M": (64,)}) == [{"N": 32, "M": (32,)}]


def test_the_last_failure_counts_and_a_limit_of_the_machine_does_not_hide_the_first() -> None:
    assert last_of([TOO_LARGE, RAISES]) == last_of([RAISES, RAISES]) == RAISES
    assert last_of([TOO_LARGE]) == TOO_LARGE
    found = last_of([RAISES, TOO_LARGE])
    assert not found.own_fault and found.reason == f"{TOO_LARGE.reason}; at derived shapes: {RAISES.reason}"
