"""References that do not run for every perturbed value, judged on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.compare.tolerance import default_tolerance, perturbation_of
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.variants import Variant
from tests.numerics.judging import Judged, Pair

DELTA = perturbation_of(torch.float32, default_tolerance(torch.float32))
ERRORS = {"honest": 1.5 * DELTA, "cheat": 8 * DELTA}
"""Relative changes of the inputs. The honest one is 2.6 standard deviations, and 12 runs find too small a standard
deviation for some of 100,000 elements."""
BEYOND = f"((x.abs() > 1.5 * (1 + {2 * DELTA})) & (x.abs() < 2))"
PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        {guard}
        return x.abs() - 1.49

def get_inputs():
    x = 1.5 * torch.randn(100_000).sign()
    x[0], x[1] = 3, -3  # the ends of the range, at which values only move inwards
    return [x]

def get_init_inputs():
    return []

HONEST = {{"honest": lambda model, x: x.abs() * (1 + {honest}) - 1.49}}
CHEATS = {{"cheat": lambda model, x: x.abs() * (1 + {cheat}) - 1.49}}
"""


def judged(folder: Path, guard: str) -> dict[str, Judged]:
    path = folder / "problem.py"
    path.write_text(PROBLEM.format(guard=guard, **ERRORS))
    with Pair(path, "full", torch.device("cpu")) as pair:
        return {each.name: each for each in pair.call(Variant.PLAIN, 0)}


@pytest.mark.parametrize("guard", [
    "pass",
    f"assert not {BEYOND}.any()",
    f"x = torch.where({BEYOND}, torch.nan, x)",
])
def test_a_reference_that_only_runs_for_small_changes_is_perturbed_by_less(tmp_path: Path, guard: str) -> None:
    found = judged(tmp_path, guard)
    assert not found["honest"].failure
    assert found["cheat"].failure


def test_without_memory_for_the_perturbed_runs_nothing_is_called_wrong(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="perturbed values"):
        judged(tmp_path, "if ((x.abs() != 1.5) & (x.abs() < 2)).any(): raise torch.OutOfMemoryError('planted')")


@pytest.mark.parametrize(("error", "raised"), [(ValueError, ProblemError), (MemoryError, MemoryError)])
def test_a_reference_that_raises_for_the_values_of_a_call_is_at_fault_unless_memory_is_short(
    tmp_path: Path, error: type[Exception], raised: type[Exception]
) -> None:
    path = tmp_path / "problem.py"
    guard = ("Model.in_float64 = getattr(Model, 'in_float64', 0) + (x.dtype is torch.float64)\n"
             f"        if Model.in_float64 > 12: raise {error.__name__}('planted')")
    path.write_text(PROBLEM.format(guard=guard, **ERRORS))
    with Pair(path, "full", torch.device("cpu")) as pair, pytest.raises(raised, match="planted"):
        list(pair.call(Variant.PLAIN, 0))
