from __future__ import annotations

import pytest

from inlinebench.report.terminal.head_to_head import head_to_head
from inlinebench.results.result import Result, Verdict

from .samples import result


@pytest.mark.parametrize(("second", "line"), [
    (result("p/b", speedup=2.84), "b is 1.42 [1.39, 1.45] times as fast as a"),
    (result("p/b", speedup=1.0), "b is 0.500 [0.490, 0.510] times as fast as a"),
    (result("p/b", speedup=2.02), "b: no significant difference from a, 1.01 [0.990, 1.03] times as fast"),
    (result("p/b", Verdict.WRONG), "b is not compared with a: b is wrong"),
    (result("p/b"), "b is not compared with a: there are no times"),
    (result("p/b", speedup=2.0, device="cpu"), "b is not compared with a: times need a GPU"),
])
def test_two_solutions_are_compared_by_the_ratio_of_their_speedups(second: Result, line: str) -> None:
    assert head_to_head([second, result("p/a", speedup=2.0)], ["a", "b"]) == line


def test_each_further_solution_is_compared_with_the_first_one_at_each_shape() -> None:
    results = [result(f"p/{name}", speedup=speedup, shape=shape) for shape in ("full", "odd")
               for name, speedup in (("a", 1.0), ("b", 2.0), ("c", 4.0))]
    assert head_to_head(results, ["a", "b", "c"]).split("\n") == [
        "b (full) is 2.00 [1.96, 2.04] times as fast as a", "b (odd) is 2.00 [1.96, 2.04] times as fast as a",
        "c (full) is 4.00 [3.92, 4.08] times as fast as a", "c (odd) is 4.00 [3.92, 4.08] times as fast as a"]


def test_a_solution_without_a_result_is_left_out() -> None:
    assert head_to_head([result("p/a", speedup=2.0)], ["a", "b"]) == ""
