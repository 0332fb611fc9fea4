from __future__ import annotations

import pytest
import torch

from inlinebench.compare.accuracy import accuracy
from inlinebench.compare.tolerance import ULPS


def test_errors_are_in_units_of_sigma_and_in_ulps() -> None:
    oracle = torch.ones(1000, dtype=torch.float64)
    reference, unit = oracle.float(), 2.0**-23
    output = reference.clone()
    output[:200] += 1 * unit
    output[200] += 1000 * unit
    at, sigma = torch.arange(1000), torch.full((1000,), 100 * unit, dtype=torch.float64)
    found = accuracy("output", output, reference, oracle, at=at, sigma=sigma)
    assert found.solution.median == 0 and found.solution.worst == pytest.approx((1000 - ULPS) / 100)
    assert found.solution.ulps[0] == 799 and found.solution.ulps[2] == 200 and found.solution.ulps[11] == 1
    assert sum(found.solution.ulps) == 1000
    assert (found.reference.worst, found.reference.rel_l2) == (0, 0)
    assert found.solution.rel_l2 == pytest.approx(1000 * unit / 1000**0.5, rel=1e-3)


def test_elements_that_are_not_finite_or_do_not_change_do_not_count() -> None:
    oracle = torch.tensor([1.0, float("nan"), float("inf"), 2.0], dtype=torch.float64)
    sigma = torch.tensor([0.0, 0.0, 0.0, 0.1], dtype=torch.float64)
    output = torch.tensor([9.0, 1.0, 1.0, 2.0])
    found = accuracy("output", output, oracle.float(), oracle, at=torch.arange(4), sigma=sigma)
    assert found.solution.worst == 0 and sum(found.solution.ulps) == 2
    nothing = torch.arange(0)
    assert accuracy("output", oracle.float(), oracle.float(), oracle, at=nothing, sigma=sigma[:0]).solution.worst == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64])
def test_any_floating_point_dtype_has_an_accuracy(dtype: torch.dtype) -> None:
    exact = torch.randn(100, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    found = accuracy("output", exact.to(dtype), exact.to(dtype), exact, at=torch.arange(100),
                     sigma=torch.ones(100, dtype=torch.float64))
    assert found.solution == found.reference and found.solution.rel_l2 > 0


def test_values_whose_squares_overflow_have_a_relative_error() -> None:
    exact = torch.tensor([1e300, -1e300, 0.0], dtype=torch.float64)
    found = accuracy("output", exact * (1 + 1e-6), exact, exact, at=torch.arange(3), sigma=torch.zeros(3))
    assert found.solution.rel_l2 == pytest.approx(1e-6) and found.reference.rel_l2 == 0
