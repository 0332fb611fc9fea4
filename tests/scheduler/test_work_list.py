from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.scheduler.work_list import WorkList


def job(problem: str, solution: str = "s", shape: str = "full") -> Evaluate:
    at = ProblemAt(Path(f"{problem}.py"), shape, {})
    return Evaluate(problem, solution, at, Path(f"{problem}-{solution}.py"), shape)


def take(work: WorkList, taker: object) -> Evaluate | None:
    """Returns the only job that a taker gets."""
    jobs = work.take(taker)
    assert jobs is None or len(jobs) == 1
    return None if jobs is None else jobs[0]


def names(jobs: Sequence[Evaluate | None]) -> list[str]:
    return [f"{each.problem_name}/{each.solution_name}" for each in jobs if each is not None]


def done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


def test_jobs_of_one_problem_and_shape_are_handed_out_together() -> None:
    work = WorkList([job("p", "a"), job("q", "a"), job("p", "b"), job("q", "b")], {})
    assert names([take(work, "x") for _ in range(5)]) == ["p/a", "p/b", "q/a", "q/b"]


def test_several_takers_start_with_different_problems() -> None:
    work = WorkList([job("p", "a"), job("p", "b"), job("q", "a"), job("q", "b")], {})
    taken = [take(work, "x"), take(work, "y"), take(work, "x"), take(work, "y"), take(work, "x")]
    assert names(taken) == ["p/a", "q/a", "p/b", "q/b"]


def test_takers_share_a_problem_if_there_is_only_one() -> None:
    work = WorkList([job("p", "a"), job("p", "b")], {})
    assert names([take(work, "x"), take(work, "y")]) == ["p/a", "p/b"]


def test_takers_get_the_jobs_that_they_were_promised() -> None:
    work = WorkList([job(problem) for problem in "pqrst"], {})
    expected: dict[str, Evaluate | None] = {}
    for taker in "xyyxy":
        taken = take(work, taker)
        assert expected.get(taker) in (None, taken)
        assert taken is not None
        expected[taker] = taken.following
    assert expected == {"x": None, "y": None}  # no jobs are left


def test_a_promised_job_goes_to_another_taker_rather_than_wait() -> None:
    work = WorkList([job("p"), job("q")], {})
    taken = take(work, "x")
    assert taken is not None and taken.following == job("q")
    assert names([take(work, "y"), take(work, "x")]) == ["q/s"]


def test_the_promised_job_is_of_the_same_problem_if_possible() -> None:
    work = WorkList([job("p", "a"), job("q", "a"), job("p", "b")], {})
    taken = take(work, "x")
    assert taken is not None and taken.following == job("p", "b")


def test_built_jobs_are_handed_out_before_unbuilt_ones() -> None:
    late: Future[None] = Future()
    work = WorkList([job("p", "a"), job("q", "a")], {Path("p-a.py"): late, Path("q-a.py"): done()})
    assert names([take(work, "x")]) == ["q/a"]
    threading.Thread(target=lambda: (time.sleep(0.1), late.set_result(None))).start()
    assert names([take(work, "x")]) == ["p/a"]  # after waiting for its build
    assert take(work, "x") is None


def test_a_job_whose_build_failed_is_ready() -> None:
    broken: Future[None] = Future()
    broken.set_exception(RuntimeError("planted"))
    assert names([take(WorkList([job("p")], {Path("p-s.py"): broken}), "x")]) == ["p/s"]


@given(st.lists(st.sampled_from("pqr"), max_size=12), st.integers(1, 4))
def test_every_job_is_handed_out_exactly_once(problems: list[str], takers: int) -> None:
    jobs = [job(problem, f"s{number}") for number, problem in enumerate(problems)]
    work = WorkList(jobs, {})

    def take_all(taker: int) -> list[Evaluate]:
        return list(iter(lambda: take(work, taker), None))

    with ThreadPoolExecutor(takers) as pool:
        taken = [each for some in pool.map(take_all, range(takers)) for each in some]
    assert sorted(names(taken)) == sorted(names(jobs))


def in_set(solution: str, shape: str) -> Evaluate:
    return replace(job("p", solution, shape), weight=1.0)


def test_the_workloads_of_a_set_are_handed_out_together() -> None:
    work = WorkList([in_set("a", "x"), in_set("a", "y"), in_set("b", "x"), in_set("b", "y")], {})
    first = work.take("t")
    assert first is not None and [each.shape_name for each in first] == ["x", "y"]
    assert first[0].following == in_set("b", "x")
    assert len(work) == 2
    work.give_back("t")
    assert len(work) == 4
    assert names(work.take("u") or ()) == ["p/a", "p/a"]


def test_shapes_that_are_in_no_set_are_handed_out_one_by_one() -> None:
    work = WorkList([job("p", "a", "x"), job("p", "a", "y")], {})
    assert names([take(work, "t")]) == ["p/a"]
