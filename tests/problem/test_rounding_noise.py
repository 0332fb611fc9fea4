from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compare.tolerance import ULPS
from inlinebench.problem.rounding_noise import FLOATS, RoundingNoise


@given(st.sampled_from(FLOATS), st.integers(0, 2**31))
def test_each_operator_rounds_differently_by_two_units(dtype: torch.dtype, seed: int) -> None:
    x = torch.linspace(-3, 5, 1000).to(dtype)
    with RoundingNoise(seed):
        found = x * x
    exact = (x * x).double()
    most = (ULPS + 1) * torch.finfo(dtype).eps * exact.abs()  # the change is rounded itself
    assert bool(((found.double() - exact).abs() <= most).all())
    assert (found != x * x).double().mean() > 0.3
    with RoundingNoise(seed):
        assert torch.equal(x * x, found)


def test_what_cancels_depends_on_the_rounding() -> None:
    y = torch.full((1000,), 1 - 2**-20)
    with RoundingNoise(1):
        found = 1 - y.clone()
    errors = (found - 2**-20).abs()
    assert 2**-24 <= float(errors.max()) <= 2**-21


def test_what_is_not_computed_stays() -> None:
    x, index = torch.randn(4, 6), torch.tensor([0, 2])
    before = x.clone()
    with RoundingNoise(1):
        assert torch.equal(x.t()[1:3], before.t()[1:3])
        assert x.detach().data_ptr() == x.data_ptr()
        assert torch.equal(index + 1, torch.tensor([1, 3]))
        assert (x > 0).dtype is torch.bool
    assert torch.equal(x, before)


def test_random_numbers_are_the_same() -> None:
    torch.manual_seed(3)
    expected, after = torch.rand(5), torch.rand(1)
    torch.manual_seed(3)
    with RoundingNoise(1):
        torch.ones(4).mul(2)
        assert torch.equal(torch.rand(5), expected)
    assert torch.equal(torch.rand(1), after)


def test_a_backward_rounds_differently() -> None:
    x = torch.randn(8, 16, requires_grad=True)

    def gradient() -> torch.Tensor:
        return torch.autograd.grad(torch.softmax(x, dim=-1).square().sum(), x)[0]

    plain = gradient()
    with RoundingNoise(1):
        noisy = gradient()
    assert not torch.equal(plain, noisy)
    torch.testing.assert_close(noisy, plain, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [lambda: torch.empty(0), lambda: torch.tensor(float("nan")) + 1])
def test_nothing_to_change(make: object) -> None:
    with RoundingNoise(1):
        found = make()  # type: ignore[operator]
    assert found.numel() == 0 or found.isnan()
