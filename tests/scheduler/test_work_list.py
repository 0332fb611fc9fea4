from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.scheduler.work_list import WorkList


def job(problem: str, solution: str = "s", shape: str = "full") -> Evaluate:
    at = ProblemAt(Path(f"{problem}.py"), shape, {})
    return Evaluate(problem, solution, at, Path(f"{problem}-{solution}.py"), shape)


def names(jobs: Sequence[Evaluate | None]) -> list[str]:
    return [f"{each.problem_name}/{each.solution_name}" for each in jobs if each is not None]


def done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


def test_jobs_of_one_problem_and_shape_come_together() -> None:
    work = WorkList([job("p", "a"), job("q", "a"), job("p", "b"), job("q", "b")], {})
    assert names([work.take("x") for _ in range(5)]) == ["p/a", "p/b", "q/a", "q/b"]


def test_several_takers_start_at_several_problems() -> None:
    work = WorkList([job("p", "a"), job("p", "b"), job("q", "a"), job("q", "b")], {})
    taken = [work.take("x"), work.take("y"), work.take("x"), work.take("y"), work.take("x")]
    assert names(taken) == ["p/a", "q/a", "p/b", "q/b"]


def test_a_taker_without_a_problem_of_its_own_helps_another() -> None:
    work = WorkList([job("p", "a"), job("p", "b")], {})
    assert names([work.take("x"), work.take("y")]) == ["p/a", "p/b"]


def test_takers_get_what_they_were_told_to_expect() -> None:
    work = WorkList([job(problem) for problem in "pqrst"], {})
    expected: dict[str, Evaluate | None] = {}
    for taker in "xyyxy":
        taken = work.take(taker)
        assert expected.get(taker) in (None, taken)
        assert taken is not None
        expected[taker] = taken.following
    assert expected == {"x": None, "y": None}  # there is no more


def test_nobody_waits_for_what_another_was_told_to_expect() -> None:
    work = WorkList([job("p"), job("q")], {})
    taken = work.take("x")
    assert taken is not None and taken.following == job("q")
    assert names([work.take("y"), work.take("x")]) == ["q/s"]


def test_what_is_expected_next_is_of_the_same_problem_where_there_is_more_of_it() -> None:
    work = WorkList([job("p", "a"), job("q", "a"), job("p", "b")], {})
    taken = work.take("x")
    assert taken is not None and taken.following == job("p", "b")


def test_what_is_built_comes_before_what_is_not() -> None:
    late: Future[None] = Future()
    work = WorkList([job("p", "a"), job("q", "a")], {Path("p-a.py"): late, Path("q-a.py"): done()})
    assert names([work.take("x")]) == ["q/a"]
    threading.Thread(target=lambda: (time.sleep(0.1), late.set_result(None))).start()
    assert names([work.take("x")]) == ["p/a"]  # after waiting for it
    assert work.take("x") is None


def test_a_build_that_fails_holds_nobody_up() -> None:
    broken: Future[None] = Future()
    broken.set_exception(RuntimeError("planted"))
    assert names([WorkList([job("p")], {Path("p-s.py"): broken}).take("x")]) == ["p/s"]


@given(st.lists(st.sampled_from("pqr"), max_size=12), st.integers(1, 4))
def test_every_job_is_handed_out_once(problems: list[str], takers: int) -> None:
    jobs = [job(problem, f"s{number}") for number, problem in enumerate(problems)]
    work = WorkList(jobs, {})

    def take_all(taker: int) -> list[Evaluate]:
        return list(iter(lambda: work.take(taker), None))

    with ThreadPoolExecutor(takers) as pool:
        taken = [each for some in pool.map(take_all, range(takers)) for each in some]
    assert sorted(names(taken)) == sorted(names(jobs))
