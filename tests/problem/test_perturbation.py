from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from inlinebench.problem.perturbation import Perturbation, Values

THOUSANDTH = Perturbation(1e-3, 0)


def perturbed(tensor: Tensor, by: Perturbation = THOUSANDTH) -> Tensor:
    return by.of([Values(tensor)])[0]


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_values_change_by_no_more_than_the_size_and_at_random(dtype: torch.dtype) -> None:
    x = drawn(10_000, dtype=dtype)
    changes = (perturbed(x) / x.double() - 1)[x.double() != 0]
    assert float(changes.abs().max()) <= 1e-3 * (1 + 1e-6)
    assert float(changes.std()) == pytest.approx(1e-3 / math.sqrt(3), rel=0.03)
    assert float(changes.mean().abs()) < 3e-5


def test_changes_of_the_size_of_float64_s_rounding_are_not_lost() -> None:
    x = drawn(1000, dtype=torch.float64)
    assert 0 < float((perturbed(x, Perturbation(1e-12, 0)) / x - 1).abs().max()) <= 1.001e-12


def test_one_seed_changes_values_in_one_way() -> None:
    x, y = drawn(100), drawn(100, dtype=torch.float64)
    one, again, other = (Perturbation(1e-3, seed).of([Values(x), Values(y)]) for seed in (1, 1, 2))
    assert all(map(torch.equal, one, again)) and not any(map(torch.equal, one, other))


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), st.integers(0, 100))
def test_values_stay_in_their_range_and_zeros_stay_zero(values: list[float], seed: int) -> None:
    x = torch.tensor(values)
    found = perturbed(x, Perturbation(0.1, seed))
    assert torch.equal(found == 0, x == 0)
    if float(x.min()) < float(x.max()):
        assert float(found.min()) >= float(x.min()) and float(found.max()) <= float(x.max())


@pytest.mark.parametrize("exact", [
    torch.tensor([0.0, 1.0, 1.0]), torch.arange(9.0), torch.tensor([0.0, -math.inf]), torch.arange(5),
    torch.tensor([True, False]), torch.rand(4, 64).sort().values, torch.empty(0),
], ids=["mask", "positions", "additive mask", "integers", "booleans", "sorted", "empty"])
def test_masks_positions_and_boundaries_do_not_change(exact: Tensor) -> None:
    assert torch.equal(perturbed(exact), exact.double() if exact.is_floating_point() else exact)


def test_a_probability_of_one_moves_inwards_only() -> None:
    found = [perturbed(torch.tensor([0.0, 0.5, 1.0]), Perturbation(1e-2, seed)) for seed in range(50)]
    assert max(float(each[2]) for each in found) == 1.0 and min(float(each[2]) for each in found) < 1.0


def test_infinities_and_nan_keep_their_place() -> None:
    x = drawn(100)
    x[3], x[5], x[7] = math.inf, -math.inf, math.nan
    found = perturbed(x)
    assert float(found[3]) == math.inf and float(found[5]) == -math.inf and bool(found[7].isnan())
    assert int((found != x).sum()) == 98


def test_complex_values_change() -> None:
    x = torch.complex(drawn(100), drawn(100).flip(0))
    assert 0 < float((perturbed(x) / x - 1).abs().max()) <= 1.001e-3


def test_rounded_values_are_those_that_the_dtype_holds() -> None:
    x = drawn(1000, dtype=torch.bfloat16)
    found = perturbed(x, Perturbation(0.1, 0, rounded=True))
    assert torch.equal(found, found.bfloat16().double()) and not torch.equal(found, x.double())


def test_rounding_is_that_of_each_dtype() -> None:
    for dtype, size in ((torch.float32, 32 * 2**-23), (torch.bfloat16, 5e-3)):
        x = drawn(1000, dtype=dtype)
        changes = perturbed(x, Perturbation(None, 0)) / x.double() - 1
        assert 0.9 < float(changes.abs().max()) / size <= 1.001


def test_the_tensor_itself_does_not_change() -> None:
    for x in (drawn(100, dtype=torch.float64), torch.arange(5.0, dtype=torch.float64)):
        before = x.clone()
        perturbed(x).add_(1)
        assert torch.equal(x, before)
