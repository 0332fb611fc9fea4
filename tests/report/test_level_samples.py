from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.terminal.samples import pass_at, render, summary
from inlinebench.results.result import Result, Verdict

from .samples import result


def sample(problem: str, number: int, verdict: Verdict = Verdict.PASSED, level: int = 1, **facts: object) -> Result:
    return result(f"{problem}/sample_{number}", verdict, level=level, **facts)  # type: ignore[arg-type]


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n), st.integers(0, n))))
def test_pass_at_k_is_the_share_of_draws_with_a_passed_sample(case: tuple[int, int, int]) -> None:
    k, samples, passed = case
    draws = [any(index < passed for index in draw) for draw in combinations(range(samples), k)]
    assert pass_at(k, samples, passed) == pytest.approx(fmean(draws))


@pytest.mark.parametrize("case", [(0, 3, 1), (4, 3, 1), (1, 3, 4), (1, 3, -1)])
def test_pass_at_k_rejects_impossible_counts(case: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="pass@"):
        pass_at(*case)


def test_levels_are_separate_and_k_is_limited_by_the_fewest_samples() -> None:
    rows = [
        *(sample("1_A", number, Verdict.PASSED if number < 2 else Verdict.WRONG, speedup=2.5 if number == 0 else 0.9
                 if number == 1 else None) for number in range(5)),
        *(sample("2_B", number, Verdict.BUILD_FAILED) for number in range(6)),
        sample("2_B", 6, Verdict.SKIPPED), sample("1_A", 0, Verdict.WRONG, level=2), result("1_A/naive", speedup=9.0),
    ]
    first, second = summary(rows)
    assert (first.level, first.problems, first.samples) == (1, 2, 11)
    assert first.passed == {1: pytest.approx(0.2), 5: pytest.approx(0.5)}
    assert first.fast[1.0] == pytest.approx(0.1) and first.fast[0.8] == pytest.approx(0.2)
    assert (second.level, second.passed) == (2, {1: 0.0})


def test_without_times_fast_p_is_unknown() -> None:
    (only,) = summary([sample("1_A", 0), sample("1_A", 1, Verdict.WRONG)])
    assert only.passed == {1: 0.5} and set(only.fast.values()) == {None}


def test_the_table_has_a_row_for_each_level_and_is_empty_without_samples() -> None:
    assert render(summary([result("a/naive")])) == ""
    shown = render(summary([sample("1_A", 0, speedup=3.0), sample("1_A", 0, level=3)]))
    assert [line.split()[0] for line in shown.splitlines()] == ["level", "-------", "1", "3", "pass@k:"]
