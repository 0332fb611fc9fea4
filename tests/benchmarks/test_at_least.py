from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

from at_least import MOST_WRONG, Noise, real, share_wrong, simulated

from ..report.samples import result


@pytest.mark.parametrize("noise", [Noise(0.02), Noise(0.02, drift=0.05)])
def test_answers_are_right_and_come_earlier(noise: Noise) -> None:
    speedups, full, early = zip(*(simulated(noise, seed) for seed in range(20)), strict=True)
    assert share_wrong(speedups, early) < MOST_WRONG
    assert median(each.calls for each in early) < median(each.calls for each in full) / 2


def test_an_answer_on_the_other_side_is_wrong_and_none_is_not() -> None:
    speedup, full, _ = simulated(Noise(0.001), 0)
    assert full.above is not None and share_wrong([speedup], [full]) == 0
    assert share_wrong([1 / speedup], [full]) == 1
    undecided = next(outcome for _, outcome, _ in (simulated(Noise(0.2), seed) for seed in range(99))
                     if outcome.above is None)
    assert share_wrong([speedup], [undecided]) == 0


def test_real_results_are_compared_by_their_answers(capsys: pytest.CaptureFixture[str]) -> None:
    found = [replace(result(f"{name}/fast", speedup=speedup), seconds=3.0)
             for name, speedup in (("faster", 1.2), ("slower", 0.8), ("unclear", 1.0))]
    assert real(found, found[::-1]) == 0
    assert "| answered | 2 | 2 |\n| opposite answers | | 0 |" in capsys.readouterr().out
    assert real(found, [replace(found[1], problem="faster"), *found[1:]]) == 1
    assert "| opposite answers | | 1 |" in capsys.readouterr().out
