"""Which inputs may change sign and scale, because they come straight from a random draw."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from inlinebench.problem.input_domains import TraceDomains


def is_free(make: Callable[[], Tensor]) -> bool:
    with TraceDomains() as domains, torch.no_grad():
        tensor = make()
    return domains.is_free(tensor)


def with_part(tensor: Tensor, index: object, value: object) -> Tensor:
    tensor[index] = value  # type: ignore[index]
    return tensor


def symmetric(tensor: Tensor) -> Tensor:
    return (tensor + tensor.T) / 2


def with_itself(function: Callable[[Tensor], Tensor]) -> Tensor:
    return function(torch.randn(8))


FREE: dict[str, Callable[[], Tensor]] = {
    "rand": lambda: torch.rand(4, 4),
    "rand_with_a_generator": lambda: torch.rand(4, generator=torch.Generator()),
    "affine": lambda: 1000 + 0.1 * torch.randn(4),
    "range": lambda: torch.rand(4) * 2 - 1,
    "one_minus": lambda: 1 - torch.rand(4),
    "uniform_": lambda: torch.empty(4).uniform_(-1, 1),
    "normal": lambda: torch.normal(0.0, 1.0, (3,)),
    "half": lambda: torch.randn(4).half().contiguous(),
    "divided": lambda: torch.randn(4) / math.sqrt(3),
    "negated": lambda: -torch.randn(4),
    "triangular": lambda: torch.randn(4, 4).tril(),
    "padded_with_zeros": lambda: F.pad(torch.randn(3), (1, 1)),
    "symmetric": lambda: symmetric(torch.randn(4, 4)),
    "stacked": lambda: torch.stack([torch.randn(3), torch.randn(3)]),
    "written_into_zeros": lambda: with_part(torch.zeros(4), slice(0, 2), torch.randn(2)),
    "distribution": lambda: torch.distributions.Normal(0.0, 1.0).sample((3,)),
    "initializer": lambda: torch.nn.init.kaiming_uniform_(torch.empty(3, 3)),
    "drawn_mask": lambda: torch.randn(5) * (torch.rand(5) > 0.5).float(),
    "masked_by_another_draw": lambda: with_part(torch.randn(5), torch.rand(5) > 0.5, 0),
    "chosen_by_another_draw": lambda: torch.where(torch.rand(5) > 0.5, torch.randn(5), 0.0),
    "scaled_by_constants": lambda: torch.randn(3) * torch.tensor([1.0, 2.0, 3.0]),
    "scaled_by_another_draw": lambda: torch.randn(4) * torch.rand(()),
    "transposed": lambda: torch.randn(3, 4).transpose(0, 1).contiguous(),
    "repeated": lambda: torch.randn(1, 3).expand(2, 3).clone(),
}
FIXED: dict[str, Callable[[], Tensor]] = {
    "sigmoid": lambda: torch.randn(4).sigmoid(),
    "sigmoid_in_place": lambda: torch.randn(4).sigmoid_(),
    "sigmoid_into_a_draw": lambda: torch.sigmoid(torch.randn(4), out=torch.randn(4)),
    "softmax": lambda: torch.randn(4).softmax(0),
    "exp": lambda: torch.randn(4).exp(),
    "softplus": lambda: -F.softplus(torch.randn(4)),
    "log_sigmoid": lambda: F.logsigmoid(torch.randn(3)),
    "abs": lambda: torch.randn(4).abs(),
    "square": lambda: torch.randn(4).square(),
    "times_itself": lambda: with_itself(lambda x: x * x),
    "silu_by_hand": lambda: with_itself(lambda x: x * torch.sigmoid(x)),
    "relu_by_a_mask": lambda: with_itself(lambda x: x * (x > 0)),
    "relu_by_an_index": lambda: with_itself(lambda x: with_part(x, x < 0, 0)),
    "relu_by_where": lambda: with_itself(lambda x: torch.where(x > 0, x, 0.0)),
    "relu_": lambda: torch.randn(4).relu_(),
    "clamp": lambda: torch.randn(4).clamp(min=0),
    "norm": lambda: F.normalize(torch.randn(4, 4)),
    "centred": lambda: with_itself(lambda x: x - x.mean()),
    "standardized": lambda: with_itself(lambda x: x / x.std()),
    "comparison": lambda: with_itself(lambda x: (x > 0).float()),
    "outer_product": lambda: with_itself(lambda x: torch.outer(x, x)),
    "codes": lambda: (torch.rand(4) * 10).long().float(),
    "codes_beside_a_draw": lambda: torch.cat([torch.randint(9, (3,))[torch.tensor([0, 1])].float(), torch.randn(2)]),
    "randint": lambda: torch.randint(0, 9, (4,)).float(),
    "bernoulli": lambda: torch.bernoulli(torch.rand(4)),
    "exponential": lambda: torch.empty(4).exponential_(),
    "round": lambda: torch.rand(4).round(),
    "floor_division": lambda: torch.div(torch.randn(4), 2, rounding_mode="floor"),
    "reciprocal": lambda: 1 / torch.rand(4),
    "sorted": lambda: torch.randn(5).sort().values,
    "cumulative": lambda: torch.rand(4).cumsum(0),
    "numpy": lambda: torch.from_numpy(numpy.random.rand(4)),
    "list": lambda: torch.tensor([1.0, 2.0]),
    "zeros": lambda: torch.zeros(3),
    "arange": lambda: torch.arange(4.0),
    "overwritten": lambda: torch.randn(4).fill_(1.0),
    "partly_overwritten": lambda: with_part(torch.randn(4), 0, 1.0),
    "additive_mask": lambda: torch.randn(5).masked_fill(torch.rand(5) > 0.5, -1e9),
    "beside_ones": lambda: torch.cat([torch.randn(3), torch.ones(1)]),
    "plus_a_range": lambda: torch.rand(4) + torch.randn(4).sigmoid(),
}


@pytest.mark.parametrize("name", FREE)
def test_an_affine_map_of_a_draw_is_free(name: str) -> None:
    assert is_free(FREE[name])


@pytest.mark.parametrize("name", FIXED)
def test_a_range_a_constant_or_an_unknown_origin_is_not_free(name: str) -> None:
    assert not is_free(FIXED[name])


def test_memory_that_is_used_again_does_not_inherit_its_origin() -> None:
    with TraceDomains() as domains:
        for _ in range(200):
            torch.randn(1000)
            assert not domains.is_free(torch.from_numpy(numpy.random.rand(1000)))


# Coefficients are odd, so that no program cancels a draw by chance.
ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "neg": torch.neg,
    "times": lambda x: 2.3 * x,
    "mul_": lambda x: x.clone().mul_(0.45),
    "plus": lambda x: x + 3,
    "from": lambda x: 1 - x,
    "abs": torch.abs,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "clamp": lambda x: x.clamp(-1, 1),
    "flip": lambda x: x.flip(0),
    "relu_": lambda x: x.clone().relu_(),
}
TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + 1.37 * y,
    "sub": lambda x, y: x - 0.71 * y,
    "mul": torch.mul,
    "div": lambda x, y: x / (y + 1e-3),
    "cat": lambda x, y: torch.cat([x[:32], y[32:]]),
    "where": lambda x, y: torch.where(y > 0, x, 0.0),
}
steps = st.lists(st.one_of(st.tuples(st.sampled_from(sorted(ONE)), st.integers(0, 9)),
                           st.tuples(st.sampled_from(sorted(TWO)), st.integers(0, 9), st.integers(0, 9))), max_size=6)


def result(program: list[tuple[str, ...]], drawn: tuple[Tensor, Tensor]) -> Tensor:
    values = list(drawn)
    for name, *operands in program:
        chosen = [values[int(number) % len(values)] for number in operands]
        values.append(ONE[name](*chosen) if name in ONE else TWO[name](*chosen))
    return values[-1]


@given(steps, st.integers(0, 2**32))
@example([("add", 0, 1), ("where", 0, 2), ("div", 1, 3)], 0)
def test_a_free_tensor_is_an_affine_map_of_one_of_the_draws(program: list[tuple[str, ...]], seed: int) -> None:
    """An affine map has its middle value in the middle between two draws, and depends on the draw."""
    torch.manual_seed(seed)
    others = [torch.randn(64, dtype=torch.float64) for _ in range(2)]
    with TraceDomains() as domains:
        drawn = torch.randn(64, dtype=torch.float64), torch.randn(64, dtype=torch.float64)
        traced = result(program, drawn)

    def is_affine_in(index: int) -> bool:
        def at(value: Tensor) -> Tensor:
            return result(program, (value, drawn[1]) if index == 0 else (drawn[0], value))

        ends = at(drawn[index]), at(others[index])
        middle = at((drawn[index] + others[index]) / 2)
        return torch.allclose(middle, (ends[0] + ends[1]) / 2) and not torch.allclose(ends[0], ends[1])

    if domains.is_free(traced):
        assert is_affine_in(0) or is_affine_in(1)
