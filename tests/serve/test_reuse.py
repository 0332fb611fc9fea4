"""Equal evaluations are made once, and only results that another evaluation would repeat are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.serve.reuse import Answered, Reuse

JOB = Evaluate("axpy", "solution", ProblemAt(Path("axpy.py"), "full", {}), Path("solution.py"), "full")
WRONG = Result("axpy", "solution", "full", "cpu", Verdict.WRONG, "it is wrong", key="a" * 32)


class Evaluations:
    """Counts evaluations, each of which returns or raises the next of the given outcomes."""

    def __init__(self, *outcomes: Result | Exception) -> None:
        self._outcomes = list(outcomes)
        self.made = 0

    def __call__(self) -> Result:
        self.made += 1
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def answered(
    reuse: Reuse, evaluate: Callable[[], Result], *, caller: str = "ann", key: str | None = WRONG.key
) -> Answered:
    return reuse.answer(caller, JOB, [key], evaluate)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_result_is_reused_if_its_verdict_repeats(verdict: Verdict) -> None:
    passed = verdict is Verdict.PASSED
    check = Check(3, 1e-4, "float64", "by name") if passed else None
    result = replace(WRONG, verdict=verdict, reason="" if passed else "it is wrong", check=check)
    reuse, evaluate = Reuse(), Evaluations(result, result)
    answers = [answered(reuse, evaluate) for _ in range(2)]
    assert [each.result for each in answers] == [result, result]
    assert [each.reused for each in answers] == [False, verdict.repeats] and evaluate.made == 2 - verdict.repeats


def test_what_other_work_on_the_machine_can_cause_is_not_reused() -> None:
    assert {verdict for verdict in Verdict if not verdict.repeats} == {
        Verdict.REJECTED, Verdict.TIMED_OUT, Verdict.OUT_OF_MEMORY, Verdict.SKIPPED, Verdict.PROBLEM_ERROR,
        Verdict.INTERNAL_ERROR}


def test_the_result_has_the_names_of_who_asks() -> None:
    reuse = Reuse()
    answered(reuse, Evaluations(WRONG))
    other = replace(JOB, problem_name="copy_of_axpy", solution_name="mine")
    found = reuse.answer("ann", other, [WRONG.key], Evaluations()).result
    assert found == replace(WRONG, problem="copy_of_axpy", solution="mine")


def test_a_result_is_not_reused_for_another_key_or_caller_or_without_a_key() -> None:
    reuse, evaluate = Reuse(), Evaluations(*[WRONG, replace(WRONG, key="b" * 32), WRONG, WRONG, WRONG])
    for caller, key in (("ann", WRONG.key), ("ann", "b" * 32), ("bob", WRONG.key), ("ann", None), ("ann", None)):
        assert not answered(reuse, evaluate, caller=caller, key=key).reused
    assert answered(reuse, evaluate).reused


def test_a_file_that_changes_before_it_is_evaluated_has_the_result_of_what_was_evaluated() -> None:
    reuse, changed = Reuse(), replace(WRONG, key="b" * 32, reason="another reason")
    answered(reuse, Evaluations(changed))
    assert answered(reuse, Evaluations(WRONG)) == Answered(WRONG, reused=False)
    assert answered(reuse, Evaluations(), key="b" * 32) == Answered(changed, reused=True)


def test_the_results_that_were_kept_first_are_removed() -> None:
    reuse = Reuse(most=2)
    for key in "abcb":
        answered(reuse, Evaluations(replace(WRONG, key=key)), key=key)
    evaluate = Evaluations(replace(WRONG, key="a"))
    assert [answered(reuse, evaluate, key=key).reused for key in "cba"] == [True, True, False]


FAILURES: list[Result | Exception] = [UsageError("planted"), replace(WRONG, verdict=Verdict.INTERNAL_ERROR)]


@pytest.mark.parametrize("failure", FAILURES, ids=["error", "internal error"])
def test_an_equal_evaluation_waits_and_evaluates_if_the_first_one_fails(failure: Result | Exception) -> None:
    reuse, begun, go_on = Reuse(), Event(), Event()
    outcomes = Evaluations(failure, WRONG)

    def evaluate() -> Result:
        begun.set()
        assert go_on.wait(60)
        return outcomes()

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(answered, reuse, evaluate)
        assert begun.wait(60)
        others = [threads.submit(answered, reuse, evaluate) for _ in range(3)]
        time.sleep(0.2)
        assert outcomes.made == 0 and not any(each.done() for each in others)
        go_on.set()
        assert first.exception() is failure or first.result() == Answered(failure, reused=False)  # type: ignore[arg-type]
        found = [each.result() for each in others]
    assert {each.result for each in found} == {WRONG} and sorted(each.reused for each in found) == [False, True, True]
    assert outcomes.made == 2
