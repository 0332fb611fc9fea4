"""Inputs are fresh in every call, also if `get_inputs` seeds generators itself."""

from __future__ import annotations

import random
import types
from collections.abc import Callable

import numpy
import pytest
import torch
from torch import Tensor

from inlinebench.problem.inputs import draw, draw_traced

CPU = torch.device("cpu")
ONE, OTHER = 0x1234567890ABCDE, 0xFEDCBA098765432
KEPT = torch.Generator().manual_seed(3)
"""A generator that lives as long as a problem's module."""


def seeds_torch() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(8)]


def seeds_every_gpu() -> list[Tensor]:
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    return [torch.randn(8)]


def seeds_in_a_fork() -> list[Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(0)
        return [torch.empty(8).normal_()]


def uses_its_own_generator() -> list[Tensor]:
    return [torch.randn(8, generator=torch.Generator().manual_seed(0))]


def uses_a_generator_of_its_module() -> list[Tensor]:
    return [torch.randn(8, generator=KEPT)]


def restores_a_state() -> list[Tensor]:
    torch.set_rng_state(torch.Generator().manual_seed(0).get_state())
    return [torch.randn(8)]


def seeds_numpy() -> list[Tensor]:
    numpy.random.seed(0)
    return [torch.from_numpy(numpy.random.rand(8))]


def uses_numpys_newer_generator() -> list[Tensor]:
    return [torch.from_numpy(numpy.random.default_rng(0).random(8))]


def seeds_python() -> list[Tensor]:
    random.seed(0)
    return [torch.tensor([random.random() for _ in range(8)])]


def seeds_nothing() -> list[Tensor]:
    return [torch.randn(8)]


def drawn(get_inputs: Callable[[], list[Tensor]], seed: int) -> tuple[Tensor, ...]:
    return draw(module_of(get_inputs), seed, CPU).tensors


def module_of(get_inputs: Callable[[], list[Tensor]]) -> types.ModuleType:
    module = types.ModuleType("problem")
    module.__file__ = "problem.py"
    vars(module)["get_inputs"] = get_inputs
    return module


@pytest.mark.parametrize("get_inputs", [
    seeds_torch, seeds_every_gpu, seeds_in_a_fork, uses_its_own_generator, uses_a_generator_of_its_module,
    restores_a_state, seeds_numpy, uses_numpys_newer_generator, seeds_python, seeds_nothing,
])
def test_inputs_follow_from_the_secret_seed_alone(get_inputs: Callable[[], list[Tensor]]) -> None:
    (one,), (other,), (again,) = (drawn(get_inputs, seed) for seed in (ONE, OTHER, ONE))
    assert torch.equal(one, again)
    assert not bool((one == other).any())
    assert not torch.equal(one, get_inputs()[0]), "the problem's own seed gives these inputs, too"


def test_what_is_drawn_twice_from_one_seed_stays_equal() -> None:
    def get_inputs() -> list[Tensor]:
        tensors = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            tensors.append(torch.randn(8))
        return tensors

    first, second, third = drawn(get_inputs, ONE)
    assert torch.equal(first, second) and not torch.equal(first, third)


def test_seeded_draws_are_still_traced() -> None:
    assert draw_traced(module_of(seeds_torch), ONE, CPU)[1] == (0,)


def test_afterwards_seeds_are_set_as_usual() -> None:
    drawn(seeds_numpy, ONE)
    drawn(seeds_python, ONE)
    drawn(seeds_torch, ONE)
    for get_inputs in (seeds_numpy, seeds_python, seeds_torch):
        assert torch.equal(*(get_inputs()[0] for _ in range(2)))
